import type { ComponentChildren } from "preact";
import { hasScope } from "../../live/session.ts";
import { Heading } from "../../parts/page.tsx";
import { Tabs } from "../../parts/tabs.tsx";

const TABS: readonly (readonly [href: string, name: string, scope?: string])[] = [
  ["/console/system", "Overview"],
  ["/console/system/settings", "Settings", "write:system"],
  ["/console/system/events", "Events"],
  ["/console/system/doctor", "Doctor"],
  ["/console/system/users", "Users", "read:users"],
  ["/console/system/secrets", "Secrets", "write:secrets"],
  ["/console/system/webhooks", "Webhooks", "read:webhooks"],
  ["/console/system/backup", "Backup", "write:system"],
];

/** The head of a system page: its buttons, and the tabs that the user has a scope for. */
export function SystemHead({ current, children }: { current: string; children?: ComponentChildren }) {
  const tabs = TABS.filter(([, , scope]) => scope === undefined || hasScope(scope))
    .map(([href, name]) => [href, name] as const);
  return (
    <>
      <Heading title="System">{children}</Heading>
      <Tabs label="System" current={current} tabs={tabs} />
    </>
  );
}
