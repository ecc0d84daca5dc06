// The language of a file's code by its name, as the highlighter calls it. Pure.

const BY_ENDING: { readonly [ending: string]: string } = {
  bash: "bash",
  c: "c",
  cc: "cpp",
  cfg: "ini",
  cpp: "cpp",
  cs: "csharp",
  css: "css",
  diff: "diff",
  go: "go",
  h: "c",
  hpp: "cpp",
  htm: "xml",
  html: "xml",
  ini: "ini",
  java: "java",
  js: "javascript",
  json: "json",
  jsx: "javascript",
  kt: "kotlin",
  lua: "lua",
  md: "markdown",
  mjs: "javascript",
  patch: "diff",
  php: "php",
  py: "python",
  pyi: "python",
  r: "r",
  rb: "ruby",
  rs: "rust",
  scss: "scss",
  sh: "bash",
  sql: "sql",
  svg: "xml",
  swift: "swift",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  xml: "xml",
  yaml: "yaml",
  yml: "yaml",
};
const BY_NAME: { readonly [name: string]: string } = { dockerfile: "dockerfile", makefile: "makefile" };

/** The language of a file; "" where nothing is known of it. */
export function languageOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const ending = name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : "";
  return (Object.hasOwn(BY_NAME, name) && BY_NAME[name]) || (Object.hasOwn(BY_ENDING, ending) && BY_ENDING[ending]) ||
    "";
}
