import {
  Brain,
  CalendarClock,
  Cpu,
  Gauge,
  Inbox,
  ListChecks,
  type LucideIcon,
  Mails,
  MessageCircle,
  Plug,
  Server,
  Users,
} from "lucide-preact";
import { COST_TABS, type DeepPlace, SYSTEM_TABS } from "./live/tabs.ts";

export interface NavItem {
  href: string;
  name: string;
  icon: LucideIcon;
  scope: string;
  /** Matches the addresses of the item. Default: every address that starts with `href`. */
  covers?: RegExp;
}

/** The pages of the navigation. */
export const ITEMS: readonly NavItem[] = [
  { href: "/", name: "Inbox", icon: Inbox, scope: "read:executions", covers: /^\/(console)?$/ },
  { href: "/console/chat", name: "Chat", icon: MessageCircle, scope: "read:chat" },
  {
    href: "/console/executions",
    name: "Work",
    icon: ListChecks,
    scope: "read:executions",
    covers: /^\/console\/(executions|tasks)/,
  },
  { href: "/console/workers", name: "Workers", icon: Users, scope: "read:workers" },
  { href: "/console/schedules", name: "Schedules", icon: CalendarClock, scope: "read:tasks" },
  { href: "/console/messages", name: "Messages", icon: Mails, scope: "read:messages" },
  { href: "/console/memory", name: "Memory", icon: Brain, scope: "read:memory" },
  {
    href: "/console/costs",
    name: "Costs",
    icon: Gauge,
    scope: "read:executions",
    covers: /^\/console\/(costs|budgets|system\/usage)/,
  },
  { href: "/console/platforms", name: "Platforms", icon: Plug, scope: "read:platforms" },
  { href: "/console/runners", name: "Runners", icon: Server, scope: "read:runners" },
  {
    href: "/console/system",
    name: "System",
    icon: Cpu,
    scope: "read:system",
    covers: /^\/console\/system(?!\/usage)/,
  },
];

/** Pages below the pages of the navigation. */
export const PAGES_BELOW: readonly DeepPlace[] = [
  { href: "/console/tasks", name: "Tasks", scope: "read:tasks" },
  // The first tab is the page of the navigation.
  ...COST_TABS.slice(1),
  ...SYSTEM_TABS.slice(1),
  { href: "/console/account", name: "Your account", scope: "" },
];

/** Forms that create something. */
export const FORMS: readonly DeepPlace[] = [
  { href: "/console/workers/new", name: "New worker", scope: "write:workers" },
  { href: "/console/schedules/new", name: "New schedule", scope: "write:tasks" },
];
