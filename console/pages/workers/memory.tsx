import { Pencil, Plus, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useAll, useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { formatConversationName } from "../../parts/format.ts";
import { FilterBar } from "../../parts/listing.tsx";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";

type Entry = Schemas["MemoryEntry"];

const GLOBAL = "global";
const SESSIONS_READ = 100;

export function Page() {
  const [{ scope, text }, change] = useAddress("scope", "text");
  const [edited, setEdited] = useState<Entry | "new" | null>(null);
  const selected = scope || GLOBAL;
  const sessions = useGet("/api/local/sessions", { query: { page_size: SESSIONS_READ } }, /^chat\./).data ??
    [];
  const entries = useAll("/api/memory", { scope: selected, text }, /^memory\./);
  const options: [string, string][] = [
    [GLOBAL, "All conversations"],
    ...sessions.map(({ id, name }): [string, string] => [`local:${id}`, formatConversationName(name)]),
  ];
  if (!options.some(([key]) => key === selected)) options.push([selected, selected]);
  return (
    <>
      <Heading title="Memory">
        <Button scope="write:memory" class="primary" icon={Plus} press={() => setEdited("new")}>
          New entry
        </Button>
      </Heading>
      <FilterBar
        filters={[{ name: "text", label: "Search memory" }, { name: "scope", label: "Scope", options }]}
        values={{ scope: selected, text }}
        change={(next) => change(next.scope === GLOBAL ? { ...next, scope: "" } : next)}
      />
      {entries.data === undefined
        ? <LoadState error={entries.error} />
        : entries.data.length === 0 && text !== ""
        ? <Empty title="No entry matches." />
        : entries.data.length === 0
        ? (
          <Empty title="No memory entries yet.">
            <p>Workers read all entries before each run, e.g. “tone: friendly, short”.</p>
          </Empty>
        )
        : (
          <ul class="entries scrolled" tabIndex={0}>
            {entries.data.map((entry) => (
              <EntryView
                key={entry.key}
                entry={entry}
                edit={() => setEdited(entry)}
                reload={entries.reload}
              />
            ))}
          </ul>
        )}
      {edited !== null && (
        <EntryForm
          scope={selected}
          entry={edited === "new" ? null : edited}
          onClose={() => (setEdited(null), entries.reload())}
        />
      )}
    </>
  );
}

function EntryView({ entry, edit, reload }: { entry: Entry; edit: () => void; reload: () => void }) {
  const { scope, key, value } = entry;
  return (
    <li>
      <div class="entry-head">
        <h2>{key}</h2>
        <span class="quiet">
          <Ago at={entry.updated_at} />
        </span>
        {hasScope("write:memory") && (
          <>
            <Button class="icon small" icon={Pencil} label={`Edit ${key}`} press={edit} />
            <Button
              class="icon small"
              icon={Trash2}
              label={`Delete ${key}`}
              confirm={{
                title: `Delete “${key}”?`,
                text: "Workers no longer read this entry. Its text is lost.",
                action: "Delete entry",
              }}
              press={() => load(api.DELETE("/api/memory/entry", { params: { query: { scope, key } } }))}
              done="Deleted"
              after={reload}
            />
          </>
        )}
      </div>
      <p class="prose">{value}</p>
    </li>
  );
}

function EntryForm({ scope, entry, onClose }: { scope: string; entry: Entry | null; onClose: () => void }) {
  const form = useForm({
    initial: { key: entry?.key ?? "", value: entry?.value ?? "" },
    async send(values) {
      await load(api.PUT("/api/memory/entry", { body: { scope, ...values } }));
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title={entry === null ? "New entry" : entry.key}
      action="Save"
      onClose={onClose}
      fields={[
        entry === null && { name: "key", label: "Key", required: true, autofocus: true },
        { name: "value", label: "Text", rows: 8, required: true },
      ]}
    />
  );
}
