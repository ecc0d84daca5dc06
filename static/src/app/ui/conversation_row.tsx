// One conversation in the list: its title, who answers, how it stands, and its menu.

import { Component, type ComponentChildren } from "preact";
import { timeLabel } from "../lib/format.ts";
import { formatCount, t } from "../lib/i18n.ts";
import type { App } from "../store/app.ts";
import { isSelectable } from "../store/selection.ts";
import type { Instance } from "../store/types.ts";
import { conversationEntries } from "./conversation_menu.tsx";
import { dragConversations } from "./dragging.ts";
import { FollowLink } from "./follow_link.tsx";
import { Icon } from "./icon.tsx";
import { MenuButton, type MenuEntry } from "./popover.tsx";

interface Props {
  app: App;
  item: Instance;
  isCurrent: boolean;
  /** What stands below its title; "" for nothing. */
  note: string;
  isSelected: boolean;
  /** Select it, or no longer; `isRange`: all from the last one up to it. */
  select: (item: Instance, isRange: boolean) => void;
}

/** Drawn again only when its conversation has changed: a list may hold thousands. */
export class ConversationRow extends Component<Props> {
  override shouldComponentUpdate(next: Props): boolean {
    const { item, isCurrent, isSelected, note } = this.props;
    if (next.item !== item || next.isCurrent !== isCurrent) return true;
    return next.isSelected !== isSelected || next.note !== note;
  }

  /** Shift and a click, or the key x, select; while something is selected, a click does. */
  onClick = (event: MouseEvent): void => {
    const { app, item } = this.props;
    if (!(event.target as Element).closest("a")) return;
    if (!isSelectable(item) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!event.shiftKey && !app.selection.count) return;
    event.preventDefault();
    event.stopPropagation();
    this.props.select(item, event.shiftKey);
  };

  onKeyDown = (event: KeyboardEvent): void => {
    const { item } = this.props;
    if (event.key.toLowerCase() !== "x" || event.ctrlKey || event.metaKey || event.altKey || !isSelectable(item)) {
      return;
    }
    event.preventDefault();
    this.props.select(item, event.shiftKey);
  };

  onDragStart = (event: DragEvent): void => {
    const { app, item, isSelected } = this.props;
    if (isSelectable(item) && !item.parentId) dragConversations(event, isSelected ? app.selection.ids : [item.id]);
  };

  entries = (): MenuEntry[] => {
    const { app, item } = this.props;
    const all = conversationEntries(app, item);
    if (!isSelectable(item)) return all;
    return [{ icon: "check", label: t("list.select"), run: () => this.props.select(item, false) }, ...all];
  };

  render({ app, item, isCurrent, isSelected, note }: Props) {
    const more = t("list.more-for", { title: app.threads.titleOf(item) });
    return (
      <li
        class={isSelected ? "row is-selected" : "row"}
        data-instance={item.id}
        onClickCapture={this.onClick}
        onDragStart={this.onDragStart}
      >
        <FollowLink
          href={app.router.address({ page: "conversation", id: item.id, place: null })}
          title={item.title || undefined}
          aria-current={isCurrent ? "page" : undefined}
          aria-keyshortcuts="X"
          onKeyDown={this.onKeyDown}
          go={() => app.place.open(item.id)}
        >
          {isSelected && (
            <span class="row-check">
              <Icon name="check" />
              <span class="visually-hidden">{t("list.is-selected")}</span>
            </span>
          )}
          <span class="row-text">
            <span class="row-title" dir="auto">{app.threads.titleOf(item)}</span>
            {note && (
              <>
                <span class="visually-hidden">{t("list.separator")}</span>
                <span class="row-agent" dir="auto">{note}</span>
              </>
            )}
          </span>
          <Marks item={item} isCurrent={isCurrent} />
        </FollowLink>
        <MenuButton
          label={more}
          button={{
            class: "icon-button",
            "aria-label": more,
            title: more,
            "data-action": "menu",
            children: <Icon name="more" />,
          }}
          entries={this.entries}
        />
      </li>
    );
  }
}

/** How a conversation stands: a symbol and a colour for the eye, words for those who do not see them. */
function Marks({ item, isCurrent }: { item: Instance; isCurrent: boolean }) {
  const { waitingCount, hasFailed, isRunning, isUnread, retryAt } = item;
  const isRetrying = isRunning && retryAt !== null && Date.parse(retryAt) > Date.now();
  return (
    <>
      {waitingCount > 0 && (
        <Mark kind="waiting" text={t("list.is-waiting", { count: waitingCount })}>
          <Icon name="ask" />
          {waitingCount > 1 && <span aria-hidden="true">{formatCount(waitingCount)}</span>}
        </Mark>
      )}
      {hasFailed && !isRunning && (
        <Mark kind="failed" text={t("list.has-failed")}>
          <Icon name="alert" />
        </Mark>
      )}
      {isRetrying && (
        <Mark kind="retrying" text={t("list.is-retrying", { when: timeLabel(retryAt) })}>
          <Icon name="again" />
        </Mark>
      )}
      {isRunning && !isRetrying && <Mark kind="running" text={t("list.is-running")} />}
      {isUnread && !isCurrent && !isRunning && <Mark kind="unread" text={t("list.is-unread")} />}
    </>
  );
}

function Mark({ kind, text, children }: { kind: string; text: string; children?: ComponentChildren }) {
  return (
    <span class={`mark is-${kind}`} title={text}>
      {children}
      <span class="visually-hidden">{text}</span>
    </span>
  );
}
