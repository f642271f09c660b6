import { hasScope } from "./session.ts";

/** A page or a form that the navigation does not show. */
export interface DeepPlace {
  href: string;
  name: string;
  /** "" for all users. */
  scope: string;
}

/** The tabs of the pages about the system. */
export const SYSTEM_TABS: readonly DeepPlace[] = [
  { href: "/console/system", name: "Overview", scope: "read:system" },
  { href: "/console/system/settings", name: "Settings", scope: "write:system" },
  { href: "/console/system/events", name: "Events", scope: "read:system" },
  { href: "/console/system/doctor", name: "Doctor", scope: "read:system" },
  { href: "/console/system/users", name: "Users", scope: "read:users" },
  { href: "/console/system/secrets", name: "Secrets", scope: "write:secrets" },
  { href: "/console/system/webhooks", name: "Webhooks", scope: "read:webhooks" },
  { href: "/console/system/backup", name: "Backup", scope: "write:system" },
];

/** The tabs of the pages about costs. */
export const COST_TABS: readonly DeepPlace[] = [
  { href: "/console/costs", name: "By worker and day", scope: "read:executions" },
  { href: "/console/system/usage", name: "Usage", scope: "read:executions" },
  { href: "/console/budgets", name: "Budgets and engines", scope: "read:budgets" },
];

/** Returns the tabs that the user has a scope for. */
export function listTabs(tabs: readonly DeepPlace[]): (readonly [href: string, name: string])[] {
  return tabs.filter(({ scope }) => hasScope(scope)).map(({ href, name }) => [href, name] as const);
}
