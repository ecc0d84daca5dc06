// Undo and redo of a conversation's turns on the server.

import type { Api, Schemas } from "./api.ts";

export type UndoPreview = Schemas["UndoPreviewOut"];
export type UndoFile = Schemas["UndoFileOut"];
export type UndoEffect = Schemas["UndoEffectOut"];
export type Revert = Schemas["RevertOut"];
export type RedoPreview = Schemas["RedoPreviewOut"];
type Undone = Schemas["UndoneOut"];
type Overwrite = Schemas["OverwriteIn"][];

const seg = encodeURIComponent;

export class UndoApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  preview = (turnId: string): Promise<UndoPreview> => this.#api.request("GET", `/turns/${seg(turnId)}/undo`);

  undo = (turnId: string, wanted: { files: boolean; messages: boolean; overwrite: Overwrite }): Promise<Undone> =>
    this.#api.request("POST", `/turns/${seg(turnId)}/undo`, wanted);

  effect = (turnId: string, id: number): Promise<Schemas["EffectUndoneOut"]> =>
    this.#api.request("POST", `/turns/${seg(turnId)}/undo/effects/${id}`, {});

  redoPreview = (instanceId: string): Promise<RedoPreview> =>
    this.#api.request("GET", `/instances/${seg(instanceId)}/redo`);

  redo = (instanceId: string, revertId: string, overwrite: Overwrite): Promise<Undone> =>
    this.#api.request("POST", `/instances/${seg(instanceId)}/redo`, { revert_id: revertId, overwrite });
}
