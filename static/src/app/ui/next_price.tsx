// Beside the button that sends: what the next message may cost, from how little to how much. Nothing where no price is known.

import { useEffect, useState } from "preact/hooks";
import { roughMoney } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Schemas } from "../net/api.ts";
import { isOwn } from "../store/instances.ts";
import { useApp } from "./context.ts";

type Price = Schemas["NextPriceOut"];

const PAUSE_MS = 600; // what is typed at once asks once

export function NextPrice() {
  const app = useApp();
  const { conversation } = app;
  const { instance, leafId } = follow(conversation);
  const [price, setPrice] = useState<Price | null>(null);
  const { id, isReadOnly } = instance;
  const asks = Boolean(id) && !isReadOnly && isOwn(instance) && !conversation.running;
  useEffect(() => {
    if (!asks) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      app.api.nextPrice(id, { signal: abort.signal }).then(setPrice, () => setPrice(null)); // one can send without it
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [id, leafId, instance.modelChoice, asks]);
  if (!asks || !price?.low || !price.high) return null;
  const [low, high] = [roughMoney(price.low), roughMoney(price.high)];
  const text = low === high ? t("usage.price", { low }) : t("usage.price-range", { low, high });
  return <span class="next-price" title={t("usage.price-about", { model: price.model ?? "" })}>{text}</span>;
}
