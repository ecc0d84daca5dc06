// Calls of the browser's tools: where it was, what it read, and each step that code took. Its pictures are the call's files,
// which are shown for every call.

import { duration } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import { fileText, withoutTricks } from "../../lib/readable.ts";
import { type BrowserStep, browserVisit, isWebAddress } from "../../store/browser_calls.ts";
import { Icon } from "../icon.tsx";
import { Lines } from "../lines.tsx";
import { Value } from "../value.tsx";
import { type CallProps, CodeOutput, Section } from "./pieces.tsx";

const SHOWN_LINKS = 50;

export function BrowserCall({ part }: CallProps) {
  const visit = browserVisit(part);
  const { address, title, status, text, links, data, code, steps, pages, console, value, refused } = visit;
  return (
    <>
      {code && (
        <div class="tool-section">
          <Lines text={fileText(code)} label={t("calls.code")} language="javascript" firstLine={1} />
        </div>
      )}
      {address && !code && (
        <div class="tool-section">
          <p class="tool-file">
            <Address address={address} />
            {status !== null && <span class="muted">{t("calls.status", { status: String(status) })}</span>}
          </p>
          {title && <p dir="auto">{withoutTricks(title)}</p>}
          {text && <Lines text={fileText(text)} label={t("calls.text-of", { address })} class="is-wrapped" />}
        </div>
      )}
      {links.length > 0 && (
        <Section title={t("browser.links", { count: links.length })}>
          <ul class="fates">
            {links.slice(0, SHOWN_LINKS).map((link, index) => (
              <li key={index}>
                <Address address={link.address} />
                {link.text && <span class="muted" dir="auto">{withoutTricks(link.text)}</span>}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {data !== undefined && (
        <Section title={t("browser.data")}>
          <Value value={data} />
        </Section>
      )}
      {steps.length > 0 && (
        <Section title={t("browser.steps", { count: steps.length })}>
          <ul class="inner-calls">
            {steps.map((step, index) => <Step key={index} step={step} />)}
          </ul>
        </Section>
      )}
      {pages.length > 0 && (
        <Section title={t("browser.pages")}>
          <ul class="fates">
            {pages.map((page) => (
              <li key={page}>
                <Address address={page} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      <CodeOutput console={console} value={value} />
      {refused.length > 0 && (
        <Section title={t("browser.refused")}>
          <ul class="fates">
            {refused.map((each) => (
              <li key={each}>
                <bdi dir="ltr" class="muted">{withoutTricks(each)}</bdi>
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Step({ step: { method, address, isOk, ms } }: { step: BrowserStep }) {
  return (
    <li class={isOk ? undefined : "is-failed"}>
      <Icon name={isOk ? "check" : "alert"} />
      <code>{withoutTricks(method)}</code>
      {address && <bdi dir="ltr" class="muted">{withoutTricks(address)}</bdi>}
      <span class="muted">{t(isOk ? "calls.call-ok" : "calls.call-failed")}</span>
      {ms !== null && <span class="muted">{duration(ms)}</span>}
    </li>
  );
}

function Address({ address }: { address: string }) {
  const shown = <bdi dir="ltr">{withoutTricks(address)}</bdi>;
  return isWebAddress(address)
    ? <a href={address} target="_blank" rel="noopener noreferrer nofollow" class="file-name">{shown}</a>
    : shown;
}
