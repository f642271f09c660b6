import { Tabs } from "../../parts/tabs.tsx";

/** The views of the service itself. */
export function SystemTabs({ current }: { current: string }) {
  return (
    <Tabs
      label="System"
      current={current}
      tabs={[
        ["/console/system", "Overview"],
        ["/console/system/usage", "Use"],
        ["/console/system/events", "Events"],
        ["/console/system/doctor", "Doctor"],
      ]}
    />
  );
}
