import {
  Activity,
  Brain,
  CalendarClock,
  CircleUser,
  Cpu,
  Ellipsis,
  Gauge,
  Inbox,
  ListChecks,
  LogOut,
  type LucideIcon,
  Mails,
  MessageCircle,
  Plug,
  Server,
  Users,
} from "lucide-preact";
import { useEffect, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { linkState } from "./live/events.ts";
import { inbox } from "./live/inbox.ts";
import { may, signOut, username } from "./live/session.ts";
import { Dialog } from "./parts/dialog.tsx";

interface Place {
  href: string;
  name: string;
  icon: LucideIcon;
  /** Addresses that belong to it. */
  covers: RegExp;
  scope: string;
}

const PLACES: readonly Place[] = [
  { href: "/", name: "Inbox", icon: Inbox, covers: /^\/(console)?$/, scope: "read:executions" },
  {
    href: "/console/chat",
    name: "Chat",
    icon: MessageCircle,
    covers: /^\/console\/chat/,
    scope: "read:chat",
  },
  {
    href: "/console/executions",
    name: "Work",
    icon: ListChecks,
    covers: /^\/console\/(executions|tasks)/,
    scope: "read:executions",
  },
  {
    href: "/console/workers",
    name: "Workers",
    icon: Users,
    covers: /^\/console\/workers/,
    scope: "read:workers",
  },
  {
    href: "/console/schedules",
    name: "Schedules",
    icon: CalendarClock,
    covers: /^\/console\/schedules/,
    scope: "read:tasks",
  },
  {
    href: "/console/messages",
    name: "Messages",
    icon: Mails,
    covers: /^\/console\/messages/,
    scope: "read:messages",
  },
  {
    href: "/console/memory",
    name: "Memory",
    icon: Brain,
    covers: /^\/console\/memory/,
    scope: "read:memory",
  },
  {
    href: "/console/budgets",
    name: "Budgets",
    icon: Gauge,
    covers: /^\/console\/budgets/,
    scope: "read:budgets",
  },
  {
    href: "/console/platforms",
    name: "Platforms",
    icon: Plug,
    covers: /^\/console\/platforms/,
    scope: "read:platforms",
  },
  {
    href: "/console/runners",
    name: "Runners",
    icon: Server,
    covers: /^\/console\/runners/,
    scope: "read:runners",
  },
  { href: "/console/system", name: "System", icon: Cpu, covers: /^\/console\/system/, scope: "read:system" },
];

// A phone's bar has room for these; the others are behind "More".
const ON_BAR = 4;

/** Where one can go: at the side of a desktop, at the foot of a phone. */
export function Navigation() {
  const [path] = useLocation();
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  const places = PLACES.filter(({ scope }) => may(scope));
  const rest = places.slice(ON_BAR);
  return (
    <div class="side">
      <p class="brand">svc</p>
      <nav aria-label="Pages" class="places">
        {places.map((place, index) => (
          <PlaceLink key={place.href} place={place} path={path} extra={index >= ON_BAR} />
        ))}
        <button
          type="button"
          class={rest.some(({ covers }) => covers.test(path)) || path === "/console/account"
            ? "place on-phone holds"
            : "place on-phone"}
          aria-expanded={open}
          onClick={() => setOpen(true)}
        >
          <Ellipsis size={20} aria-hidden="true" />
          <span>More</span>
        </button>
      </nav>
      <div class="side-foot">
        <LinkNote />
        <Link href="/console/account" class="who" title={`Signed in as ${username.value}`}>
          {username.value}
        </Link>
        <button
          type="button"
          class="icon"
          onClick={() => void signOut()}
          aria-label="Sign out"
          title="Sign out"
        >
          <LogOut size={16} aria-hidden="true" />
        </button>
      </div>
      {open && (
        <Dialog title="More" onClose={() => setOpen(false)}>
          <nav aria-label="More pages" class="more" onClick={() => setOpen(false)}>
            {rest.map((place) => <PlaceLink key={place.href} place={place} path={path} extra={false} />)}
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

function PlaceLink({ place, path, extra }: { place: Place; path: string; extra: boolean }) {
  const here = place.covers.test(path);
  const needed = inbox.value?.length ?? 0;
  return (
    <Link
      href={place.href}
      class={`place ${extra ? "on-desk" : ""}`}
      {...(here ? { "aria-current": "page" as const } : {})}
    >
      <place.icon size={20} aria-hidden="true" />
      <span>{place.name}</span>
      {place.href === "/" && needed > 0 && (
        <span class="badge">
          {needed}
          <span class="unseen">need you</span>
        </span>
      )}
    </Link>
  );
}

/** Says when the page does not follow the service. */
function LinkNote() {
  const state = linkState.value;
  if (state !== "broken") return null;
  return (
    <p class="link-note" role="status">
      <Activity size={14} aria-hidden="true" /> Reconnecting
    </p>
  );
}
