import { hasScope } from "../../live/session.ts";
import { Tabs } from "../../parts/tabs.tsx";

const TABS: readonly (readonly [href: string, name: string, scope?: string])[] = [
  ["/console/system", "Overview"],
  ["/console/system/usage", "Usage"],
  ["/console/system/events", "Events"],
  ["/console/system/doctor", "Doctor"],
  ["/console/system/users", "Users", "read:users"],
  ["/console/system/webhooks", "Webhooks", "read:webhooks"],
  ["/console/system/backup", "Backup", "write:system"],
];

/** The tabs of the system pages that the user has a scope for. */
export function SystemTabs({ current }: { current: string }) {
  const tabs = TABS.filter(([, , scope]) => scope === undefined || hasScope(scope))
    .map(([href, name]) => [href, name] as const);
  return <Tabs label="System" current={current} tabs={tabs} />;
}
