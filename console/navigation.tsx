import { Activity, CircleUser, Ellipsis, Keyboard, LogOut, Search } from "lucide-preact";
import { useEffect, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { linkState } from "./live/events.ts";
import { inbox } from "./live/inbox.ts";
import { hasScope, signOut, username } from "./live/session.ts";
import { IconButton } from "./parts/button.tsx";
import { Dialog } from "./parts/dialog.tsx";
import { Mark } from "./parts/mark.tsx";
import { openPalette } from "./palette.tsx";
import { ITEMS, type NavItem } from "./places.ts";
import { openKeyHelp } from "./shortcut_help.ts";

// The bar of a phone shows this many pages, and the dialog "More" shows the others.
const ON_BAR = 4;

export function Navigation() {
  const [path] = useLocation();
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  const items = ITEMS.filter(({ scope }) => hasScope(scope));
  const rest = items.slice(ON_BAR);
  const covered = path === "/console/account" || rest.some((item) => isCurrent(item, path));
  return (
    <div class="side">
      <p class="brand">
        <Mark size={24} /> svc
      </p>
      <nav aria-label="Pages" class="places">
        {items.map((item, index) => (
          <ItemLink key={item.href} item={item} path={path} extra={index >= ON_BAR} />
        ))}
        <button
          type="button"
          class={`place on-phone ${covered ? "holds" : ""}`}
          aria-expanded={open}
          onClick={() =>
            setOpen(true)}
        >
          <Ellipsis size={20} aria-hidden="true" />
          <span>More</span>
        </button>
      </nav>
      <div class="side-foot">
        <StreamState />
        <Link href="/console/account" class="who" title={`Signed in as ${username.value}`}>
          {username.value}
        </Link>
        <IconButton
          icon={Search}
          size={16}
          label="Search"
          title="Search (Ctrl+K)"
          onClick={openPalette}
        />
        <IconButton
          icon={Keyboard}
          size={16}
          label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={openKeyHelp}
        />
        <IconButton
          icon={LogOut}
          size={16}
          label="Sign out"
          title="Sign out"
          onClick={() =>
            void signOut()}
        />
      </div>
      {open && (
        <Dialog
          title="More"
          onClose={() => setOpen(false)}
        >
          <nav aria-label="More pages" class="more" onClick={() => setOpen(false)}>
            <button type="button" class="place" onClick={openPalette}>
              <Search size={20} aria-hidden="true" />
              <span>Search</span>
            </button>
            {rest.map((item) => <ItemLink key={item.href} item={item} path={path} extra={false} />)}
            <Link href="/console/account" class="place">
              <CircleUser size={20} aria-hidden="true" />
              <span>Your account</span>
            </Link>
            <button type="button" class="place" onClick={() => void signOut()}>
              <LogOut size={20} aria-hidden="true" />
              <span>Sign out {username.value}</span>
            </button>
          </nav>
          <div class="actions end">
            <button type="button" onClick={() => setOpen(false)}>Close</button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

function isCurrent({ href, covers }: NavItem, path: string): boolean {
  return covers?.test(path) ?? path.startsWith(href);
}

function ItemLink({ item, path, extra }: { item: NavItem; path: string; extra: boolean }) {
  const needed = inbox.value?.length ?? 0;
  return (
    <Link
      href={item.href}
      class={`place ${extra ? "on-desk" : ""}`}
      {...(isCurrent(item, path) ? { "aria-current": "page" as const } : {})}
    >
      <item.icon size={20} aria-hidden="true" />
      <span>{item.name}</span>
      {item.href === "/" && needed > 0 && (
        <span class="badge">
          {needed}
          <span class="unseen">need attention</span>
        </span>
      )}
    </Link>
  );
}

function StreamState() {
  if (linkState.value !== "broken") return null;
  return (
    <p class="link-note" role="status">
      <Activity size={14} aria-hidden="true" /> Reconnecting
    </p>
  );
}
