import { may } from "../../live/session.ts";
import { Tabs } from "../../parts/tabs.tsx";

/** The views of the service itself; what somebody may not see is not offered. */
export function SystemTabs({ current }: { current: string }) {
  return (
    <Tabs
      label="System"
      current={current}
      tabs={[
        ["/console/system", "Overview"],
        ["/console/system/usage", "Usage"],
        ["/console/system/events", "Events"],
        ["/console/system/doctor", "Doctor"],
        ...may("read:users") ? [["/console/system/users", "People"] as const] : [],
        ...may("read:webhooks") ? [["/console/system/webhooks", "Webhooks"] as const] : [],
        ...may("write:system") ? [["/console/system/backup", "Backup"] as const] : [],
      ]}
    />
  );
}
