// Entry of the pages without a conversation (sign-in, errors): the theme switch only.

import { bindThemeButton } from "./preferences.js";

const button = document.getElementById("theme");
if (button) bindThemeButton(button);
