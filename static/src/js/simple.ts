// Entry of the pages without a conversation (sign-in, errors): the theme switch only.

import { bindThemeButton } from "../app/lib/theme.ts";

const button = document.getElementById("theme");
if (button) bindThemeButton(button);
