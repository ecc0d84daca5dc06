// What an agent may use and touch, below its welcome: from its class. Loaded when needed.

import { useEffect, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { Schemas } from "../net/api.ts";
import { humanised } from "../store/tool_words.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";

type Offers = Schemas["OffersOut"];

const known = new Map<string, Offers>();

export function WelcomeOffers({ agent }: { agent: string }) {
  const { api } = useApp();
  const [offers, setOffers] = useState<Offers | null>(known.get(agent) ?? null);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    let isHere = true;
    setOffers(known.get(agent) ?? null);
    setFailed(false);
    if (known.has(agent)) return;
    api.offers(agent).then((found) => {
      known.set(agent, found);
      if (isHere) setOffers(found);
    }, () => isHere && setFailed(true));
    return () => void (isHere = false);
  }, [agent]);
  if (hasFailed) return <p class="muted">{t("offers.failed")}</p>;
  if (!offers || offers.tools.length + offers.reach.length === 0) return null;
  const { tools, reach } = offers;
  return (
    <div class="offers">
      {tools.length > 0 && (
        <section aria-labelledby="offers-tools">
          <h3 id="offers-tools">{t("offers.tools")}</h3>
          <ul class="offers-tools">
            {tools.map(({ name, title, asks, changes }) => (
              <li key={name}>
                <Icon name={asks ? "ask" : changes ? "edit" : "search"} />
                <bdi>{withoutTricks(title || humanised(name))}</bdi>
                {asks && <span class="muted">{t("offers.asks")}</span>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {reach.length > 0 && (
        <section aria-labelledby="offers-reach">
          <h3 id="offers-reach">{t("offers.reach")}</h3>
          <ul class="offers-reach">
            {reach.map((line) => <li key={line} dir="auto">{withoutTricks(line)}</li>)}
          </ul>
        </section>
      )}
    </div>
  );
}
