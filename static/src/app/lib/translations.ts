// The translations of the page's language. The server's page names their modules (`page_messages`): one for the first view,
// which is loaded beside the script, and one for what is opened later. English has neither.

import { addTranslations, type Message, useCatalogue } from "./i18n.ts";

type Messages = Readonly<Record<string, Message>>;

let rest: Promise<Messages> | null = null;

/** The translations for the first view. Without them, as when the connection breaks here, the page is in English. */
export async function loadTranslations(): Promise<void> {
  const [first, later] = addresses();
  if (!first) return;
  useCatalogue(document.documentElement.lang, await messagesOf(first));
  if (later) rest = messagesOf(later);
}

/** Those for views that are opened later. Their texts are not read before this has ended. */
export async function loadLaterTranslations(): Promise<void> {
  if (rest) addTranslations(await rest);
}

function addresses(): (string | undefined)[] {
  if (typeof document === "undefined") return []; // tests without a page
  const named = document.querySelectorAll<HTMLMetaElement>('meta[name="messages"]');
  return [...named].map((each) => each.content);
}

async function messagesOf(address: string): Promise<Messages> {
  try {
    return (await import(address)).default;
  } catch (error) {
    console.warn("the texts of this language could not be loaded", error);
    return {};
  }
}
