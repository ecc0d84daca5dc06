/** Lets people try operations of the API where they read about them. Without it the page is all there to read. */

const { csrf, sending, failed, invalid, missing } = document.body.dataset;

for (const form of document.querySelectorAll("form.try")) {
  form.hidden = false;
  form.noValidate = true;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}

addEventListener("hashchange", open);
open();

/** Open what the address names: a link to a schema leads to a closed one. */
function open() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.querySelector("summary")?.focus();
  }
}

/** Send the operation as the person filled it in, and show the answer as text. */
async function send(form) {
  const status = form.querySelector("[role=status]");
  const result = form.querySelector(".result");
  const body = form.elements.namedItem("body")?.value;
  result.hidden = true;
  const empty = [...form.querySelectorAll("input[required]")].find((input) => !input.value);
  if (empty) {
    status.textContent = missing;
    empty.focus();
    return;
  }
  if (body && !isJson(body)) {
    status.textContent = invalid;
    form.elements.namedItem("body").focus();
    return;
  }
  status.textContent = sending;
  try {
    const response = await fetch(addressOf(form), { method: form.dataset.method, headers: headersOf(form, body), body });
    const text = await response.text();
    status.textContent = `${response.status} ${response.statusText}`;
    result.textContent = isJson(text) ? JSON.stringify(JSON.parse(text), null, 2) : text;
    result.hidden = !text;
  } catch {
    status.textContent = failed;
  }
}

function addressOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input")) {
    if (input.dataset.place === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    if (input.dataset.place === "query" && input.value) query.set(input.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

function headersOf(form, body) {
  const headers = { "X-CSRFToken": csrf, ...(body ? { "Content-Type": "application/json" } : {}) };
  for (const input of form.querySelectorAll('input[data-place="header"]')) {
    if (input.value) headers[input.name] = input.value;
  }
  return headers;
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
