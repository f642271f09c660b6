import { useMemo } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { LinkButton } from "../../parts/button.tsx";
import { FilterBar } from "../../parts/listing.tsx";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { type Column, DataTable, type RowGroup } from "../../parts/data_table.tsx";
import { SystemHead } from "./system_head.tsx";

type Setting = Schemas["Setting"];

const SOURCES: Record<Setting["source"], string> = {
  file: "File",
  environment: "Environment",
  default: "Default",
};

const COLUMNS: readonly Column<Setting>[] = [
  { title: "Setting", cell: ({ key }) => <Key name={key} /> },
  { title: "Value", cell: ({ value }) => <Value value={value} /> },
  { title: "Set by", extra: true, cell: (setting) => <Source setting={setting} /> },
];

export function Page() {
  const [values, change] = useAddress("find", "source");
  const read = useGet("/api/system/config", {});
  const { path, settings } = read.data ?? { path: null, settings: undefined };
  const find = values.find.toLowerCase();
  const matches = settings?.filter(({ key, value, source }) =>
    (values.source === "" || source === values.source) && `${key} ${value}`.toLowerCase().includes(find)
  );
  const groups = useMemo(() => groupSettings(matches ?? []), [settings, values.find, values.source]);
  return (
    <>
      <SystemHead current="/console/system/settings">
        <LinkButton href="/console/system/setup">Set up an engine or a platform</LinkButton>
      </SystemHead>
      <FilterBar
        filters={[
          { name: "find", label: "Setting or value" },
          { name: "source", label: "Set by", options: [["", "All settings"], ...Object.entries(SOURCES)] },
        ]}
        values={values}
        change={change}
        count={settings && `${matches?.length} of ${settings.length}`}
      />
      <div class="scrolled">
        {settings === undefined ? <LoadState error={read.error} /> : (
          <>
            <p class="hint">
              {path === null ? "The service has no configuration file." : (
                <>
                  Read from <code>{path}</code>, the environment and the defaults when the service started.
                </>
              )} Secrets are hidden.
            </p>
            {groups.length === 0
              ? (
                <Empty title="No matches.">
                  <button type="button" onClick={() => change({ find: "", source: "" })}>
                    Clear filters
                  </button>
                </Empty>
              )
              : <DataTable label="Settings" columns={COLUMNS} groups={groups} rowKey={({ key }) => key} />}
          </>
        )}
      </div>
    </>
  );
}

/** Groups settings by the first part of their key. Settings without a group come first. */
function groupSettings(settings: readonly Setting[]): RowGroup<Setting>[] {
  const groups = Map.groupBy(settings, ({ key }) => key.includes(".") ? key.split(".", 1)[0] ?? "" : "");
  return [...groups].map(([title, items]) => ({ title, items }))
    .toSorted((one, other) => one.title.localeCompare(other.title));
}

/** A key, which breaks before a dot on a narrow screen. */
function Key({ name }: { name: string }) {
  const [first, ...rest] = name.split(".");
  return (
    <code>
      {first}
      {rest.map((part) => (
        <>
          <wbr />.{part}
        </>
      ))}
    </code>
  );
}

function Value({ value }: { value: string }) {
  if (value === "" || value === "[]" || value === "{}") return <span class="quiet">none</span>;
  return <code class="clip wide" title={value}>{value}</code>;
}

function Source({ setting: { source, at } }: { setting: Setting }) {
  if (source === "default") return <span class="quiet">default</span>;
  return <span title={at}>{source === "file" ? `line ${at.slice(at.lastIndexOf(":") + 1)}` : at}</span>;
}
