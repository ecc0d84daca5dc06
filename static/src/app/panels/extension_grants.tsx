// What a manifest that is being written asks for, one by one, and what of it a person grants.

import { useMemo, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { manifestIn, permissionList, type Permissions, permissionsOf } from "../store/extension_facts.ts";

type Raw = Record<string, unknown>;

export interface ExtensionGrants {
  /** What the manifest asks for; null where it cannot be read yet. */
  asked: Raw | null;
  has: Raw;
  set: (permissions: Permissions) => void;
  granted: () => Raw;
}

/** The grants of a manifest: all that it asks for at first; for a changed manifest, only what was granted before and is still asked for. */
export function useGrants(manifest: string, had: Raw | null = null): ExtensionGrants {
  const asked = useMemo(() => requestedIn(manifest), [manifest]);
  const mark = JSON.stringify(asked);
  const [chosen, choose] = useState<{ mark: string; permissions: Raw } | null>(null); // of other texts it does not count
  const has = chosen?.mark === mark ? chosen.permissions : asked && had ? within(asked, had) : asked ?? {};
  return {
    asked,
    has,
    set: (permissions) => choose({ mark, permissions: { ...permissions } }),
    granted: () => ({ ...permissionsOf(has) }),
  };
}

/** Of what is asked for, that which is granted already. */
function within(asked: Raw, had: Raw): Raw {
  const withheld = permissionList({ requested: asked, granted: had }).filter(({ isGranted }) => !isGranted);
  let has = asked;
  for (const { key } of withheld) {
    const found = permissionList({ requested: asked, granted: has }).find((each) => each.key === key);
    if (found) has = { ...found.set(false) };
  }
  return has;
}

function requestedIn(manifest: string): Raw | null {
  try {
    const { permissions } = manifestIn(manifest);
    return { ...permissionsOf((permissions ?? {}) as Raw) };
  } catch {
    return null; // it is being written: the server says what is wrong with it
  }
}

export function Grants({ grants }: { grants: ExtensionGrants }) {
  const { asked, has, set } = grants;
  if (!asked) return <p class="muted">{t("extensions.asks-unknown")}</p>;
  const permissions = permissionList({ requested: asked, granted: has });
  if (!permissions.length) return <p class="muted">{t("extensions.asks-nothing")}</p>;
  return (
    <fieldset class="tools-levels extension-grants">
      <legend class="field-label">{t("extensions.asks-for")}</legend>
      {permissions.map((permission) => (
        <label class="ticked" key={permission.key}>
          <input
            type="checkbox"
            role="switch"
            class="tick"
            checked={permission.isGranted}
            onChange={(event) => set(permission.set(event.currentTarget.checked))}
          />
          <span dir="auto">{withoutTricks(permission.text)}</span>
        </label>
      ))}
      <p class="muted">{t("extensions.asks-about")}</p>
    </fieldset>
  );
}
