// Who is in a conversation. Its owner adds people by name or by a link, gives them other roles, and ends that.

import { useEffect, useRef, useState } from "preact/hooks";
import { copyText } from "../lib/clipboard.ts";
import { relativeTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { messageOf } from "../net/api.ts";
import { type GivenRole, type Invitation, PeopleApi, type Person } from "../net/people_api.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { isOwn } from "../store/instances.ts";
import type { People } from "../store/people.ts";
import { IconButton } from "../ui/icon.tsx";
import { PersonMark } from "../ui/person_mark.tsx";
import { Problem } from "../ui/problem.tsx";
import { Dialog } from "./dialog.tsx";

const ROLES: readonly GivenRole[] = ["reader", "writer", "approver"];
const WORDS = {
  reader: "people.reader",
  writer: "people.writer",
  approver: "people.approver",
  owner: "people.owner",
} as const;

/** Runs a change, shows why it failed, and reads everything again. */
type Run = (change: () => Promise<unknown>) => Promise<boolean>;

export function Share({ api, people, instance, close }: DialogProps<"share">) {
  const own = isOwn(instance);
  const calls = useRef(new PeopleApi(api, instance.id)).current;
  const [problem, setProblem] = useState("");
  const [open, setOpen] = useState<readonly Invitation[]>([]);
  const read = async () => {
    await people.read(instance.id);
    if (own) setOpen(await calls.invitations());
  };
  const run: Run = async (change) => {
    try {
      setProblem("");
      await change();
      await read();
      return true;
    } catch (error) {
      setProblem(messageOf(error));
      return false;
    }
  };
  useEffect(() => void run(async () => {}), []);
  return (
    <Dialog title={t("people.title")} close={close} isWide>
      <PeopleList people={people} calls={calls} run={run} isOwn={own} />
      {own && <AddPerson calls={calls} run={run} />}
      {own && <Invitations calls={calls} run={run} open={open} />}
      <Problem text={problem} />
      <p class="muted">{t(own ? "people.about" : "people.about-member")}</p>
    </Dialog>
  );
}

interface Part {
  calls: PeopleApi;
  run: Run;
}

function PeopleList({ people, calls, run, isOwn }: Part & { people: People; isOwn: boolean }) {
  const { items } = follow(people);
  return (
    <ul class="people" aria-label={t("people.list")}>
      {items.map((person) => (
        <li key={person.author || "owner"}>
          <PersonMark name={person.name} />
          <span class="person-name" dir="auto">
            {person.name}
            {person.is_you && <span class="muted">{t("people.is-you")}</span>}
            {!person.is_you && people.isHere(person) && <span class="person-here">{t("people.is-here")}</span>}
          </span>
          {isOwn && person.id
            ? <Manage person={person} id={person.id} calls={calls} run={run} />
            : <span class="muted">{t(WORDS[person.role])}</span>}
        </li>
      ))}
    </ul>
  );
}

function Manage({ person, id, calls, run }: Part & { person: Person; id: string }) {
  return (
    <>
      <RoleChoice
        label={t("people.role-of", { name: person.name })}
        value={person.role as GivenRole}
        choose={(role) => void run(() => calls.setRole(id, role))}
      />
      <IconButton
        icon="close"
        label={t("people.remove", { name: person.name })}
        onClick={() => void run(() => calls.remove(id))}
      />
    </>
  );
}

function RoleChoice({ label, value, choose }: { label: string; value: GivenRole; choose: (role: GivenRole) => void }) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => choose(currentTarget.value as GivenRole)}
    >
      {ROLES.map((role) => <option key={role} value={role}>{t(WORDS[role])}</option>)}
    </select>
  );
}

function AddPerson({ calls, run }: Part) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<GivenRole>("writer");
  const add = async () => {
    if (name.trim() && await run(() => calls.add(name.trim(), role))) setName("");
  };
  return (
    <div class="people-row">
      <input
        type="text"
        name="person"
        autocomplete="off"
        maxLength={150}
        dir="auto"
        aria-label={t("people.name")}
        placeholder={t("people.name")}
        value={name}
        onInput={({ currentTarget }) => setName(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          void add();
        }}
      />
      <RoleChoice label={t("people.role")} value={role} choose={setRole} />
      <button type="button" class="button is-primary" disabled={!name.trim()} onClick={() => void add()}>
        {t("people.add")}
      </button>
    </div>
  );
}

function Invitations({ calls, run, open }: Part & { open: readonly Invitation[] }) {
  const [role, setRole] = useState<GivenRole>("writer");
  const [link, setLink] = useState("");
  const [isCopied, setCopied] = useState(false);
  const make = () =>
    run(async () => {
      const { path } = await calls.invite(role);
      const address = `${location.origin}${path}`;
      setLink(address);
      setCopied(await copyText(address));
    });
  return (
    <>
      <div class="people-row">
        <span class="person-name">{t("people.by-link")}</span>
        <RoleChoice label={t("people.role-by-link")} value={role} choose={setRole} />
        <button type="button" class="button" onClick={() => void make()}>{t("people.make-link")}</button>
      </div>
      {link && (
        <p class="people-link" role="status">
          <input type="text" readOnly dir="ltr" aria-label={t("people.link")} value={link} />
          <span class="muted">{t(isCopied ? "people.link-copied" : "people.link-once")}</span>
        </p>
      )}
      {open.length > 0 && (
        <ul class="people" aria-label={t("people.invitations")}>
          {open.map(({ id, role, expires_at }) => (
            <li key={id}>
              <span class="person-name">
                {t(WORDS[role])}
                <span class="muted">{t("people.expires", { when: relativeTime(expires_at) })}</span>
              </span>
              <button type="button" class="quiet" onClick={() => void run(() => calls.withdraw(id))}>
                {t("people.withdraw")}
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
