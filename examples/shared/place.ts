// Where the product is and who asks. `run.py` opens the page with both behind the `#`, which browsers do not send.

const given = new URLSearchParams(location.hash.slice(1));
for (const [key, value] of given) sessionStorage.setItem(key, value);
if (location.hash) history.replaceState(null, "", location.pathname + location.search);

export const server = sessionStorage.getItem("server") ?? location.origin;
export const token = sessionStorage.getItem("token") ?? "";
export const name = new URLSearchParams(location.search).get("name") ?? "example";
