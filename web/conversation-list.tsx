/** Owns: the conversations by what they want of the person, searching them, and what can be done with one. */
import { memo, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { VList } from "virtua";
import type { ListedConversation, ListModel } from "../client/index.ts";
import { describeState, phaseOf, type Phase } from "../client/phase.ts";
import { LIST } from "./focus.ts";
import { NotificationSwitch } from "./notifications.tsx";
import { conversationRoute, linkTo, navigate } from "./route.ts";
import { useSession } from "./session.tsx";
import { doLater, tellDone, tellError } from "./toasts.tsx";
import { relativeTime, shortPath } from "./text/format.ts";
import { elapsed, useList, useNow } from "./use-models.ts";

type Group = "waits" | "works" | "earlier" | "archived";
const HEADINGS: { readonly [group in Group]: string } = {
  waits: "Waits for you",
  works: "At work",
  earlier: "Earlier",
  archived: "Archived",
};

type Item =
  | { readonly kind: "heading"; readonly group: Group }
  | { readonly kind: "conversation"; readonly conversation: ListedConversation };

export function ConversationList({
  selected,
  onClose,
}: {
  readonly selected: string | null;
  readonly onClose: () => void;
}) {
  const list = useList();
  const [search, setSearch] = useState("");
  const [showsArchived, setShowsArchived] = useState(false);
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const items = useMemo(
    () => itemsOf(list, search, showsArchived, removed),
    [list, search, showsArchived, removed],
  );
  const hide = (id: string, isHidden: boolean) =>
    setRemoved((ids) => {
      const next = new Set(ids);
      if (isHidden) next.add(id);
      else next.delete(id);
      return next;
    });
  const now = useNow(true);
  return (
    <nav
      id={LIST}
      tabIndex={-1}
      aria-label="Conversations"
      // A link was followed, perhaps to the view that the list covers.
      onClick={(event) => {
        if (event.defaultPrevented && event.target instanceof Element && event.target.closest("a") !== null)
          onClose();
      }}
    >
      <header>
        <a className="brand" {...linkTo({ kind: "new" })}>
          Bedrock
        </a>
        <a className="button" {...linkTo({ kind: "new" })} title="New conversation">
          New
        </a>
        <button className="only-phone" onClick={onClose} aria-label="Close the list">
          ×
        </button>
      </header>
      <input
        type="search"
        placeholder="Search"
        aria-label="Search conversations"
        value={search}
        onChange={(event) => setSearch(event.target.value)}
      />
      {items.length === 0 ? (
        <p className="quiet nothing">{nothing(list, search)}</p>
      ) : (
        <VList className="items">
          {items.map((item) =>
            item.kind === "heading" ? (
              <h2 key={item.group}>{HEADINGS[item.group]}</h2>
            ) : (
              <Entry
                key={item.conversation.id}
                conversation={item.conversation}
                isSelected={item.conversation.id === selected}
                now={now}
                hide={hide}
              />
            ),
          )}
        </VList>
      )}
      <footer>
        <label>
          <input
            type="checkbox"
            checked={showsArchived}
            onChange={(event) => setShowsArchived(event.target.checked)}
          />{" "}
          Show archived
        </label>
        <NotificationSwitch />
        <a href="/docs" target="_blank" rel="noreferrer">
          API
        </a>
      </footer>
    </nav>
  );
}

function nothing(list: ListModel, search: string): string {
  if (!list.isLoaded) return "Reading the conversations …";
  return search === "" ? "No conversation yet." : "No conversation has this in its title or directory.";
}

function itemsOf(
  list: ListModel,
  search: string,
  showsArchived: boolean,
  removed: ReadonlySet<string>,
): Item[] {
  const wanted = search.trim().toLowerCase();
  const groups: { [group in Group]: ListedConversation[] } = {
    waits: [],
    works: [],
    earlier: [],
    archived: [],
  };
  for (const conversation of list.conversations.values()) {
    const { id, title, cwd, archived, state } = conversation;
    if (removed.has(id)) continue;
    if (wanted !== "" && !`${title}\n${cwd}`.toLowerCase().includes(wanted)) continue;
    groups[archived ? "archived" : GROUPS[phaseOf(state)]].push(conversation);
  }
  const shown: Group[] = showsArchived
    ? ["waits", "works", "earlier", "archived"]
    : ["waits", "works", "earlier"];
  return shown.flatMap((group) => {
    const conversations = groups[group].sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
    if (conversations.length === 0) return [];
    return [
      { kind: "heading" as const, group },
      ...conversations.map((conversation) => ({ kind: "conversation" as const, conversation })),
    ];
  });
}

const GROUPS: { readonly [phase in Phase]: Group } = {
  waits: "waits",
  works: "works",
  rests: "earlier",
  failed: "earlier",
  ended: "earlier",
};

type EntryProps = {
  readonly conversation: ListedConversation;
  readonly isSelected: boolean;
  readonly now: number;
  readonly hide: (id: string, isHidden: boolean) => void;
};

const Entry = memo(function Entry({ conversation, isSelected, now, hide }: EntryProps) {
  const { id, title, cwd, mode, state, since, updatedAt } = conversation;
  const phase = phaseOf(state);
  const [isRenaming, setRenaming] = useState(false);
  const linkId = useId();
  return (
    <div className="entry" data-selected={isSelected} data-focus-home={linkId}>
      {isRenaming ? (
        <Rename conversation={conversation} onDone={() => setRenaming(false)} />
      ) : (
        <a id={linkId} {...linkTo(conversationRoute(id))} aria-current={isSelected ? "page" : undefined}>
          <span className={`dot ${phase}`} aria-hidden="true" />
          <span className="title">{title}</span>
          <small>
            {/* The directory comes last: it is what may be cut off. */}
            {state.kind === "idle" ? "" : `${describeState(state)} · `}
            {mode === "unrestricted" && <span className="bad">unrestricted · </span>}
            {shortPath(cwd)}
          </small>
        </a>
      )}
      {!isRenaming && (
        <div className="beside">
          <time dateTime={updatedAt}>
            {phase === "works" ? elapsed(now - since) : relativeTime(updatedAt, now)}
          </time>
          <Menu
            conversation={conversation}
            onRename={() => setRenaming(true)}
            hide={hide}
            isSelected={isSelected}
          />
        </div>
      )}
    </div>
  );
});

function Rename({
  conversation,
  onDone,
}: {
  readonly conversation: ListedConversation;
  readonly onDone: () => void;
}) {
  const { call } = useSession();
  const [title, setTitle] = useState(conversation.title);
  const isOver = useRef(false);
  const end = (isWanted: boolean) => {
    if (isOver.current) return;
    isOver.current = true;
    onDone();
    const next = title.trim();
    if (!isWanted || next === "" || next === conversation.title) return;
    call((routes) =>
      routes.conversations[":id"].$patch({ param: { id: conversation.id }, json: { title: next } }),
    ).catch(tellError);
  };
  return (
    <input
      className="rename"
      aria-label="Title"
      autoFocus
      maxLength={500}
      value={title}
      onFocus={(event) => event.target.select()}
      onChange={(event) => setTitle(event.target.value)}
      onBlur={() => end(true)}
      onKeyDown={(event) => {
        if (event.key === "Enter") end(true);
        if (event.key === "Escape") {
          event.stopPropagation();
          end(false);
        }
      }}
    />
  );
}

type MenuProps = Pick<EntryProps, "conversation" | "isSelected" | "hide"> & { readonly onRename: () => void };

function Menu({ conversation, isSelected, hide, onRename }: MenuProps) {
  const { call } = useSession();
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const { id: conversationId, title, archived } = conversation;
  const itemsIn = () => [...(menu.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];

  const archive = (value: boolean) =>
    call((routes) =>
      routes.conversations[":id"].$patch({ param: { id: conversationId }, json: { archived: value } }),
    );
  const actions: readonly (readonly [string, (isByKey: boolean) => void])[] = [
    ["Rename", onRename],
    [
      archived ? "Take out of the archive" : "Archive",
      (isByKey) => {
        const undo = () => void archive(false).catch(tellError);
        archive(!archived).then(() => {
          if (!archived) tellDone(`“${title}” is archived.`, undo, { takesFocus: isByKey });
        }, tellError);
      },
    ],
    [
      "Delete",
      (isByKey) => {
        hide(conversationId, true);
        if (isSelected) navigate({ kind: "new" });
        const restore = () => hide(conversationId, false);
        const remove = () => {
          call((routes) => routes.conversations[":id"].$delete({ param: { id: conversationId } })).catch(
            (error: unknown) => {
              restore();
              tellError(error);
            },
          );
        };
        const text = `“${title}” will be deleted with its sub-agents.`;
        doLater(text, remove, restore, { takesFocus: isByKey });
      },
    ],
  ];
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isOpen) return;
    // The browser closes the menu. The Stop of the conversation is another key press.
    if (event.key === "Escape") event.stopPropagation();
    if (event.key === "Tab") menu.current?.hidePopover();
    const items = itemsIn();
    const to = indexAfter(event.key, items.indexOf(document.activeElement as HTMLElement), items.length);
    if (to === null) return;
    event.preventDefault();
    items[to]?.focus();
  };
  return (
    <div className="menu" onKeyDown={onKeyDown}>
      <button
        aria-label={`More about ${title}`}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        popoverTarget={id}
      >
        ⋯
      </button>
      <div
        ref={menu}
        id={id}
        role="menu"
        aria-label={`More about ${title}`}
        popover="auto"
        onToggle={({ newState }) => {
          setOpen(newState === "open");
          if (newState === "open") itemsIn()[0]?.focus();
        }}
      >
        {actions.map(([name, act]) => (
          <button
            key={name}
            role="menuitem"
            tabIndex={-1}
            onClick={({ detail }) => {
              menu.current?.hidePopover();
              // A press of the mouse has a number, that of a key has none.
              act(detail === 0);
            }}
          >
            {name}
          </button>
        ))}
      </div>
    </div>
  );
}

/** Which of `count` items a key leads to; null: the key has no meaning in a menu. */
function indexAfter(key: string, at: number, count: number): number | null {
  switch (key) {
    case "ArrowDown":
      return (at + 1) % count;
    case "ArrowUp":
      return (at - 1 + count) % count;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return null;
  }
}
