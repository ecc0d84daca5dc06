// The menu with the person's name: memory, theme, keys, the archive, import, signing out.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";
import { lazy } from "./lazy.tsx";
import { Popover } from "./popover.tsx";

const UserMenuItems = lazy(async () => (await import("../later/views.ts")).UserMenuItems);

export function UserMenu() {
  const app = useApp();
  follow(app.person);
  const user = app.person.name;
  const label = t("list.user-menu", { name: user });
  return (
    <>
      <Popover
        label={label}
        role="menu"
        prepare={UserMenuItems.load}
        button={{
          id: "user-menu",
          class: "user-button",
          "aria-label": label,
          children: (
            <>
              <Icon name="person" />
              <span class="user-name" dir="auto">{user}</span>
              <Icon name="more" />
            </>
          ),
        }}
      >
        {(close) => <UserMenuItems close={close} />}
      </Popover>
    </>
  );
}
