// Entry of the pages without a conversation (sign-in, errors): the theme switch only.

import { bindThemeButton } from "./lib/theme.ts";

const button = document.getElementById("theme");
if (button) bindThemeButton(button);
