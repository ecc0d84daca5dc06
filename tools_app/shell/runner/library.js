// What is bundled of just-bash: `python -m tools_app.shell.bundling` makes `dist/just_bash.js` of it.
export { Bash } from "just-bash/browser";
