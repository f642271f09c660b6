import { Pencil, Plus, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import { api, ask, askAll, askPage, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Choice, TextField } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { conversationText } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";

type Entry = Schemas["MemoryEntry"];

const GLOBAL = "global";
const PAGE_SIZE = 100;
const ENTRIES_MAX = 1_000;

/** What workers are to know: everywhere, or in one conversation (contract 17). */
export function MemoryPage() {
  const [{ scope }, change] = useAddress("scope");
  const [edited, setEdited] = useState<Entry | "new" | null>(null);
  const chosen = scope || GLOBAL;
  const sessions = useResource(
    "memory scopes",
    (signal) =>
      askPage(api.GET("/api/local/sessions", { params: { query: { page_size: PAGE_SIZE } }, signal })),
    ({ kind }) => kind.startsWith("chat."),
  ).data?.items ?? [];
  const entries = useResource(
    chosen,
    (signal) => readAll(chosen, signal),
    ({ kind }) => kind.startsWith("memory."),
  );
  const known = [
    [GLOBAL, "Everywhere"],
    ...sessions.map(({ id, name }) => [`local:${id}`, conversationText(name)]),
  ] as [
    string,
    string,
  ][];
  if (!known.some(([key]) => key === chosen)) known.push([chosen, chosen]);
  return (
    <>
      <Heading title="Memory">
        {may("write:memory") && (
          <button type="button" class="primary" onClick={() => setEdited("new")}>
            <Plus size={16} aria-hidden="true" /> New entry
          </button>
        )}
      </Heading>
      <div class="filters">
        <Choice
          bare
          label="Where it holds"
          value={chosen}
          onChange={(value) => change({ scope: value === GLOBAL ? "" : value })}
          options={known}
        />
      </div>
      {entries.data === undefined
        ? <Waiting refusal={entries.refusal} />
        : entries.data.length === 0
        ? (
          <Empty title="Nothing is noted here.">
            <p>Workers read every entry before each run, such as “tone: friendly, short”.</p>
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
          scope={chosen}
          entry={edited === "new" ? null : edited}
          onClose={() => (setEdited(null), entries.reload())}
        />
      )}
    </>
  );
}

function readAll(scope: string, signal: AbortSignal): Promise<Entry[]> {
  return askAll((cursor) => {
    const query = { scope, page_size: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
    return askPage(api.GET("/api/memory", { params: { query }, signal }));
  }, ENTRIES_MAX);
}

function EntryView({ entry, edit, reload }: { entry: Entry; edit: () => void; reload: () => void }) {
  const { scope, key, value } = entry;
  async function remove(): Promise<void> {
    const yes = await confirmed({
      title: `Forget “${key}”?`,
      text: "Its text is lost.",
      action: "Forget it",
    });
    if (!yes) return;
    await attempt(
      () => ask(api.DELETE("/api/memory/entry", { params: { query: { scope, key } } })),
      "Forgotten",
    );
    reload();
  }
  return (
    <li class="entry">
      <div class="entry-head">
        <h2>{key}</h2>
        <span class="quiet">
          <Ago at={entry.updated_at} />
        </span>
        {may("write:memory") && (
          <>
            <button type="button" class="icon small" aria-label={`Change ${key}`} onClick={edit}>
              <Pencil size={14} aria-hidden="true" />
            </button>
            <Act
              class="icon small"
              label={`Forget ${key}`}
              run={() => remove()}
            >
              <Trash2 size={14} aria-hidden="true" />
            </Act>
          </>
        )}
      </div>
      <p class="prose">{value}</p>
    </li>
  );
}

function EntryForm({ scope, entry, onClose }: { scope: string; entry: Entry | null; onClose: () => void }) {
  const [key, setKey] = useState(entry?.key ?? "");
  const [value, setValue] = useState(entry?.value ?? "");
  const sent = useSend(async () => {
    await ask(api.PUT("/api/memory/entry", { body: { scope, key: entry?.key ?? key, value } }));
    onClose();
  });
  const { refusal } = sent;
  return (
    <DialogForm
      title={entry === null ? "New entry" : entry.key}
      action="Save"
      sent={sent}
      onClose={onClose}
    >
      {entry === null && (
        <TextField
          label="Key"
          name="key"
          value={key}
          onInput={setKey}
          refusal={refusal}
          required
          autofocus
        />
      )}
      <TextField
        label="Text"
        name="value"
        rows={8}
        value={value}
        onInput={setValue}
        refusal={refusal}
        required
      />
    </DialogForm>
  );
}
