// Theme: a cookie, so that the server draws the page right from its first byte. "system" has no cookie.

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];

/** The theme that is on. */
export function currentTheme(): Theme {
  return (document.documentElement.dataset.theme || "system") as Theme;
}

/** Show this theme on this page. */
export function showTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Show this theme, on the next pages too: for a year. */
export function setTheme(theme: Theme): void {
  showTheme(theme);
  const age = theme === "system" ? 0 : 31_536_000;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `think_theme=${theme}; path=/; max-age=${age}; samesite=lax${secure}`;
}

/** The theme after this one; the last is followed by the first. */
export const nextTheme = (theme: Theme): Theme => THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];

/** Make a button the switch: each press goes to the next theme, and its name says which one is on, in the server's words. */
export function bindThemeButton(button: HTMLElement): void {
  const label = () => {
    const theme = currentTheme();
    const text = button.getAttribute(`data-label-${theme}`) ?? "";
    button.setAttribute("aria-label", text);
    button.title = text;
    button.dataset.theme = theme;
  };
  button.addEventListener("click", () => {
    setTheme(nextTheme(currentTheme()));
    label();
  });
  label();
}
