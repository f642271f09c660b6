import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import { type Runner, useRunners } from "../../live/runners.ts";
import { may } from "../../live/session.ts";
import { Choice } from "../../parts/field.tsx";
import { Heading } from "../../parts/page.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { Status, statusWord } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { Handover } from "./runner_token.tsx";
import { RunnerForm } from "./runner_form.tsx";
import { RunnerView } from "./runner.tsx";

const ROW_PX = 60;
const STATES = ["online", "silent", "draining"];
/** A list that is seen at a glance needs no filters. */
const FILTERED_FROM = 8;

/** The other machines that run workers: which are here, what they have and do, and how one is added (contract 18). */
export function RunnersPage() {
  const [{ find, state, runner: chosen }, change] = useAddress("find", "state", "runner");
  const [adding, setAdding] = useState(false);
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  const read = useRunners();
  const all = read.data;
  const shown = (all ?? []).filter((one) => (state === "" || one.state === state) && isLike(one, find));
  const selected = all?.find(({ id }) => id === chosen);
  const add = may("write:runners") && (
    <button type="button" class="primary" onClick={() => setAdding(true)}>
      <Plus size={16} aria-hidden="true" /> Add a runner
    </button>
  );
  return (
    <>
      <Heading title="Runners">{all !== undefined && all.length > 0 && add}</Heading>
      {all !== undefined && (all.length >= FILTERED_FROM || find !== "" || state !== "") && (
        <Filters find={find} state={state} change={change} count={`${shown.length} of ${all.length}`} />
      )}
      {all === undefined
        ? <Waiting refusal={read.refusal} />
        : all.length === 0
        ? <NoRunners>{add}</NoRunners>
        : shown.length === 0
        ? (
          <Empty title="No runner matches.">
            <button type="button" onClick={() => change({ find: "", state: "" })}>Show all</button>
          </Empty>
        )
        : (
          <Rows
            label="Runners"
            count={shown.length}
            height={ROW_PX}
            row={(index) => {
              const one = shown[index];
              return one && <RunnerRow runner={one} open={() => change({ runner: one.id })} />;
            }}
          />
        )}
      {selected !== undefined && (
        <RunnerView
          runner={selected}
          reload={read.reload}
          onClose={() => change({ runner: "" })}
        />
      )}
      {adding && (
        <RunnerForm
          onClose={(added) => {
            setAdding(false);
            if (added !== undefined) setMade(added);
            read.reload();
          }}
        />
      )}
      {made !== null && <Handover name={made.name} token={made.token} onClose={() => setMade(null)} />}
    </>
  );
}

function isLike({ name, labels, engines }: Runner, words: string): boolean {
  return [name, ...labels, ...engines].some((text) => text.toLowerCase().includes(words.toLowerCase()));
}

interface FiltersProps {
  find: string;
  state: string;
  change: (change: { find?: string; state?: string }) => void;
  count: string;
}

function Filters({ find, state, change, count }: FiltersProps) {
  return (
    <div class="filters">
      <input
        type="search"
        aria-label="Name, label or engine"
        placeholder="Name, label or engine"
        value={find}
        onInput={(event) => change({ find: event.currentTarget.value })}
      />
      <Choice
        bare
        label="State"
        value={state}
        onChange={(value) => change({ state: value })}
        options={[["", "Every state"], ...STATES.map((one) => [one, statusWord(one)] as const)]}
      />
      <p class="count">{count}</p>
    </div>
  );
}

function RunnerRow({ runner, open }: { runner: Runner; open: () => void }) {
  const { name, labels, state, draining, engines, version, running, max_runs, last_seen_at } = runner;
  const notes = [labels.join(", ") || "no labels", engines.join(", "), version, draining && "gets no runs"];
  return (
    <button type="button" class="row" onClick={open}>
      <Status of={last_seen_at === null ? "awaited" : state} bare />
      <span class="row-main">
        <span class="row-title">{name}</span>
        <span class="row-note">{notes.filter(Boolean).join(" · ")}</span>
      </span>
      <span class="row-side">
        {last_seen_at === null ? <span>not here yet</span> : (
          <>
            <span>{running} of {max_runs} runs</span>
            <span>
              seen <Ago at={last_seen_at} />
            </span>
          </>
        )}
      </span>
    </button>
  );
}

function NoRunners({ children }: { children: preact.ComponentChildren }) {
  return (
    <Empty title="Every worker runs on the service's own machine.">
      <p>
        A runner is another machine that runs workers: for more memory, a GPU, macOS, or a login that is only
        there. It needs the program <code>svc</code>, a token, and a way to this service, and no open port.
      </p>
      {children}
    </Empty>
  );
}
