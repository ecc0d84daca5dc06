// The token that a form of this page sends, so that the server knows that it came from here.

export const csrfToken = (): string =>
  document.querySelector<HTMLMetaElement>('meta[name="csrf-token"]')?.content ?? "";
