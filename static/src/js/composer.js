// Where one writes. It grows, keeps a draft per conversation, takes files, and never loses what was typed.

import { setText } from "./dom.js";
import { Attachments } from "./attachments.js";
import { commandOf } from "../app/store/commands.ts";
import { CommandRow } from "./command_row.js";
import { recall, remember } from "../app/lib/storage.ts";

const DRAFT_PAUSE = 250;

export class Composer {
  #draftKey = "";
  #timer = 0;
  #editing = null;

  /** `elements`: {form, input, send, stop, attach, fileInput, files, editBar, editCancel, note, commands}. `on`: {send, stop, editLast, command}. */
  constructor(elements, api, on) {
    this.elements = elements;
    this.on = on;
    this.attachments = new Attachments(api, elements.files, () => this.#changed());
    this.commands = new CommandRow(elements.commands, (command) => this.fill(`${command.usage} `));
    this.#bind();
  }

  #bind() {
    const { form, input, stop, attach, fileInput, editCancel } = this.elements;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    input.addEventListener("input", () => this.#changed());
    input.addEventListener("keydown", (event) => this.#onKey(event));
    input.addEventListener("paste", (event) => this.#take(event, event.clipboardData));
    stop.addEventListener("click", () => this.on.stop());
    attach.addEventListener("click", () => fileInput.click());
    fileInput.addEventListener("change", () => {
      this.#addFiles([...fileInput.files]);
      fileInput.value = "";
    });
    editCancel.addEventListener("click", () => this.cancelEdit());
    addEventListener("pagehide", () => this.#save());
  }

  /** Make `element` a place to drop files on. */
  acceptDrops(element) {
    const hasFiles = (event) => !this.elements.form.hidden && event.dataTransfer?.types.includes("Files");
    element.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      element.classList.add("is-drop");
    });
    element.addEventListener(
      "dragleave",
      (event) => !element.contains(event.relatedTarget) && element.classList.remove("is-drop"),
    );
    element.addEventListener("drop", (event) => {
      element.classList.remove("is-drop");
      if (hasFiles(event)) this.#take(event, event.dataTransfer);
    });
  }

  /** Open the draft of another conversation. */
  open(draftKey) {
    this.#save();
    this.#editing = null;
    this.#draftKey = draftKey;
    const draft = recall(`draft.${draftKey}`, {});
    this.attachments.restore(draft.files);
    this.#setText(draft.text ?? "");
    this.#showEditing();
  }

  /** The draft moves with a conversation that has got its id. */
  rename(draftKey) {
    this.#draftKey = draftKey;
  }

  focus() {
    if (!matchMedia("(pointer: coarse)").matches) this.elements.input.focus();
  }

  get isEmpty() {
    return this.elements.input.value.trim() === "" && this.attachments.isEmpty;
  }

  /** Show or hide the stop button; with something typed both buttons stand side by side. */
  setRunning(isRunning) {
    this.isRunning = isRunning;
    this.elements.stop.hidden = !isRunning;
    this.elements.send.hidden = isRunning && this.isEmpty;
    const label = this.#editing ? "Send the edited message" : isRunning ? "Send after this answer" : "Send";
    this.elements.send.setAttribute("aria-label", label);
    this.elements.send.title = label;
  }

  submit() {
    if (this.isEmpty) return;
    if (this.attachments.isBusy) return this.#say("A file is still being uploaded.");
    const command = !this.#editing && this.attachments.items.length === 0 && commandOf(this.elements.input.value);
    const message = { text: this.elements.input.value.trim(), files: this.attachments.parts(), edited: this.#editing };
    this.#editing = null;
    this.attachments.clear();
    this.#setText("");
    this.#showEditing();
    remember(`draft.${this.#draftKey}`, null);
    if (command) this.on.command(command);
    else this.on.send(message);
  }

  /** Put a message that was taken back, or one to edit, into the field. */
  fill(text, files = []) {
    this.#setText(text);
    this.attachments.restore(files);
    this.#changed();
    this.elements.input.focus();
  }

  edit(message, text, files) {
    this.#save();
    this.#editing = message;
    this.fill(text, files);
    this.#showEditing();
  }

  cancelEdit() {
    if (!this.#editing) return false;
    this.open(this.#draftKey); // back to what was being written before
    this.elements.input.focus();
    return true;
  }

  #showEditing() {
    this.elements.editBar.hidden = !this.#editing;
    document.querySelectorAll(".message.is-edited").forEach((element) => element.classList.remove("is-edited"));
    if (this.#editing) {
      document.querySelector(`.message[data-id="${CSS.escape(this.#editing.id)}"]`)?.classList.add("is-edited");
    }
    this.setRunning(this.isRunning);
  }

  #onKey(event) {
    if (event.isComposing || event.keyCode === 229) return;
    const isPlain = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
    if (event.key === "Enter" && (isPlain || event.ctrlKey || event.metaKey)) {
      if (isPlain && matchMedia("(pointer: coarse)").matches) return; // the phone's key breaks the line; the button sends
      event.preventDefault();
      if (!this.commands.complete(this.elements.input.value)) this.submit();
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      if (!this.cancelEdit()) this.on.stop();
    } else if (event.key === "ArrowUp" && isPlain && this.isEmpty && this.elements.input.value === "") {
      if (this.on.editLast()) event.preventDefault();
    }
  }

  #take(event, transfer) {
    const files = [...(transfer?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.#addFiles(files);
  }

  #addFiles(files) {
    this.#say(this.attachments.add(files));
    this.#changed();
  }

  #say(text) {
    setText(this.elements.note, text);
    this.elements.note.hidden = !text;
  }

  #setText(text) {
    this.elements.input.value = text;
    this.commands.show(text);
    this.#grow();
    this.#say("");
  }

  #changed() {
    this.commands.show(this.elements.input.value);
    this.#grow();
    this.setRunning(this.isRunning);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#save(), DRAFT_PAUSE);
  }

  #grow() {
    const { input } = this.elements;
    input.style.height = "auto";
    input.style.height = `${input.scrollHeight}px`;
  }

  #save() {
    clearTimeout(this.#timer);
    if (!this.#draftKey || this.#editing) return;
    const draft = { text: this.elements.input.value, files: this.attachments.saved() };
    remember(`draft.${this.#draftKey}`, draft.text || draft.files.length ? draft : null);
  }
}
