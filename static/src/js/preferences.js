// Theme: a cookie, so that the server draws the page right from its first byte. "system" has no cookie.

const NAMES = { system: "Follow the system", light: "Light", dark: "Dark" };
const ORDER = ["system", "light", "dark"];

function currentTheme() {
  return document.documentElement.dataset.theme || "system";
}

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const age = theme === "system" ? 0 : 31_536_000;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `think_theme=${theme}; path=/; max-age=${age}; samesite=lax${secure}`;
}

/** Wire the switch: each press goes to the next theme, and its name says which one is on. */
export function bindThemeButton(button) {
  const label = () => {
    const text = `Theme: ${NAMES[currentTheme()]}`;
    button.setAttribute("aria-label", text);
    button.title = text;
    button.dataset.theme = currentTheme();
  };
  button.addEventListener("click", () => {
    setTheme(ORDER[(ORDER.indexOf(currentTheme()) + 1) % ORDER.length]);
    label();
  });
  label();
}
