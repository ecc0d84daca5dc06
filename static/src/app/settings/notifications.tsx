// The section "Notifications": whether this browser shows them, which ones, the quiet hours, and the devices.

import { useEffect, useRef, useState } from "preact/hooks";
import { relativeTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { ownZone } from "../lib/own_zone.ts";
import { deviceName, ownFingerprint, type PushProblem, subscribe, unsubscribe } from "../lib/push.ts";
import { messageOf } from "../net/api.ts";
import { type NoticeChoices, type Notifications, NotificationsApi, type PushDevice } from "../net/notifications_api.ts";
import { Failure } from "../panels/panel.tsx";
import type { Reading } from "../ui/reading.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { SavingState, useSaving } from "./field.tsx";
import { useSection } from "./reading.ts";

const KIND_LABELS = {
  decision: "notifications.decision",
  answer: "notifications.answer",
  schedule: "notifications.schedule",
} as const;

const PROBLEMS = {
  unsupported: "notifications.unsupported",
  "no-worker": "notifications.no-worker",
  refused: "notifications.refused",
} as const;
const KINDS = ["decision", "answer", "schedule"] as const;
const USUAL_QUIET = { quiet_from: "22:00:00", quiet_until: "07:00:00" };

interface Props {
  calls: NotificationsApi;
  reading: Reading<Notifications>;
  value: Notifications;
}

export function NotificationsSection() {
  const { api } = useApp();
  const calls = useRef(new NotificationsApi(api)).current;
  const reading = useSection((signal) => calls.read(signal));
  const { value } = reading;
  if (!value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("common.loading")}</p>;
  }
  const props = { calls, reading, value };
  return (
    <>
      <p class="settings-intro">{t("notifications.about")}</p>
      <Devices {...props} />
      <Kinds {...props} />
      <QuietHours {...props} />
    </>
  );
}

/** This browser first, with the button that turns it on; then all of them. */
function Devices({ calls, reading, value }: Props) {
  const [own, setOwn] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => void ownFingerprint().then(setOwn), []);
  const here = value.devices.find(({ fingerprint }) => fingerprint === own);
  const run = async (act: () => Promise<unknown>) => {
    setBusy(true);
    setProblem("");
    try {
      await act();
      setOwn(await ownFingerprint());
      await reading.again();
    } catch (error) {
      setProblem(messageOf(error));
    }
    setBusy(false);
  };
  const turnOn = async () => {
    const found = await subscribe(value.public_key);
    if (typeof found === "string") throw new Error(t(PROBLEMS[found as PushProblem]));
    await calls.add({ name: deviceName(), ...found });
  };
  const turnOff = async (device: PushDevice) => {
    await unsubscribe();
    await calls.remove(device.id);
  };
  return (
    <section class="settings-field" aria-labelledby="notice-devices">
      <h3 id="notice-devices" class="settings-label">{t("notifications.devices")}</h3>
      <p class="notice-here">
        <Icon name={here ? "check" : "close"} />
        <span>{t(here ? "notifications.this-on" : "notifications.this-off")}</span>
        <button
          type="button"
          class={here ? "button" : "button is-primary"}
          disabled={isBusy}
          onClick={() => void run(() => here ? turnOff(here) : turnOn())}
        >
          {t(here ? "notifications.turn-off" : "notifications.turn-on")}
        </button>
      </p>
      <Problem text={problem} />
      {value.devices.length === 0 && <p class="muted">{t("notifications.no-devices")}</p>}
      <ul class="settings-rows">
        {value.devices.map((device) => (
          <DeviceRow
            key={device.id}
            device={device}
            isThis={device === here}
            remove={() => void run(() => device === here ? turnOff(device) : calls.remove(device.id))}
            test={() => calls.test(device.id)}
          />
        ))}
      </ul>
    </section>
  );
}

interface RowProps {
  device: PushDevice;
  isThis: boolean;
  remove: () => void;
  test: () => Promise<unknown>;
}

function DeviceRow({ device: { name, created_at, used_at }, isThis, remove, test }: RowProps) {
  const app = useApp();
  const [isSent, setSent] = useState(false);
  const send = async () => {
    try {
      await test();
      setSent(true);
      app.announcer.say(t("notifications.test-sent"));
    } catch (error) {
      app.notices.fail(error);
    }
  };
  return (
    <li>
      <div class="settings-row-text">
        <p dir="auto">{name}</p>
        <p class="muted">
          {[
            ...(isThis ? [t("notifications.is-this")] : []),
            t("notifications.since", { when: relativeTime(created_at) }),
            ...(used_at ? [t("notifications.used", { when: relativeTime(used_at) })] : []),
          ].join(" · ")}
        </p>
      </div>
      <div class="notice-verbs">
        <button type="button" class="quiet" disabled={isSent} onClick={send}>
          {t(isSent ? "notifications.test-sent" : "notifications.test")}
        </button>
        <button
          type="button"
          class="button"
          aria-label={t("notifications.remove-label", { name })}
          onClick={remove}
        >
          {t("notifications.remove")}
        </button>
      </div>
    </li>
  );
}

/** Changes some wishes: at once here, and back where they could not be stored. */
function useChange({ calls, reading, value }: Props) {
  const saving = useSaving();
  const [wanted, setWanted] = useState<Partial<NoticeChoices>>({});
  const change = async (more: Partial<NoticeChoices>) => {
    setWanted({ ...wanted, ...more });
    await saving.save(async () => reading.set({ ...value, choices: await calls.change(more) }));
    setWanted({});
  };
  return { saving, change, choices: { ...value.choices, ...wanted } };
}

function Kinds(props: Props) {
  const { saving, change, choices } = useChange(props);
  return (
    <fieldset class="settings-field" aria-describedby="notice-kinds-error">
      <legend class="settings-label">{t("notifications.kinds")}</legend>
      {KINDS.map((kind) => (
        <label key={kind} class="ticked">
          <input
            type="checkbox"
            name={kind}
            checked={choices[kind]}
            onChange={({ currentTarget }) => void change({ [kind]: currentTarget.checked })}
          />
          {t(KIND_LABELS[kind])}
        </label>
      ))}
      <p class="settings-result">
        <SavingState saving={saving} id="notice-kinds-error" />
      </p>
    </fieldset>
  );
}

function QuietHours(props: Props) {
  const { saving, change, choices: { quiet_from: from, quiet_until: until, zone } } = useChange(props);
  const isOn = from !== null && until !== null;
  const set = (wanted: Partial<NoticeChoices>) =>
    void change({ quiet_from: from, quiet_until: until, ...wanted, zone: ownZone() });
  return (
    <fieldset class="settings-field" aria-describedby="notice-quiet-error">
      <legend class="settings-label">{t("notifications.quiet")}</legend>
      <p class="muted">{t("notifications.quiet-about", { zone: isOn ? zone : ownZone() })}</p>
      <label class="ticked">
        <input
          type="checkbox"
          checked={isOn}
          onChange={({ currentTarget }) =>
            set(currentTarget.checked ? USUAL_QUIET : { quiet_from: null, quiet_until: null })}
        />
        {t("notifications.quiet-on")}
      </label>
      {isOn && (
        <div class="notice-hours">
          <Hour label={t("notifications.quiet-from")} value={from} choose={(quiet_from) => set({ quiet_from })} />
          <Hour label={t("notifications.quiet-until")} value={until} choose={(quiet_until) => set({ quiet_until })} />
        </div>
      )}
      <p class="settings-result">
        <SavingState saving={saving} id="notice-quiet-error" />
      </p>
    </fieldset>
  );
}

function Hour({ label, value, choose }: { label: string; value: string; choose: (value: string) => void }) {
  return (
    <label>
      <span>{label}</span>
      <input
        type="time"
        class="field"
        required
        value={value.slice(0, 5)}
        onChange={({ currentTarget }) => currentTarget.value && choose(currentTarget.value)}
      />
    </label>
  );
}
