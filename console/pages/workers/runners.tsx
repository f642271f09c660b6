import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { useRunners } from "../../live/runners.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { FilterBar, Listing, NoMatches, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { listStatusOptions } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { RunnerDialog } from "./runner.tsx";
import { RunnerForm } from "./runner_form.tsx";
import { RunnerTokenDialog } from "./runner_token.tsx";

type Runner = Schemas["Runner"];

const STATES = ["online", "silent", "draining"];
/** A shorter list needs no filters. */
const FILTERS_MIN = 8;

/** The other machines that run workers. */
export function Page() {
  const [values, change] = useAddress("find", "state", "runner");
  const { find, state, runner: selectedId } = values;
  const [adding, setAdding] = useState(false);
  const [created, setCreated] = useState<{ name: string; token: string } | null>(null);
  const read = useRunners();
  const all = read.data;
  const matches = all?.filter((one) => (state === "" || one.state === state) && includesText(one, find));
  const selected = all?.find(({ id }) => id === selectedId);
  const empty = all?.length === 0;
  const filtered = find + state !== "";
  const add = hasScope("write:runners") && (
    <Button class="primary" icon={Plus} press={() => setAdding(true)}>Add runner</Button>
  );
  return (
    <>
      <Heading title="Runners">{!empty && add}</Heading>
      {all !== undefined && (all.length >= FILTERS_MIN || filtered) && (
        <FilterBar
          filters={[
            { name: "find", label: "Name, label or engine" },
            { name: "state", label: "State", options: listStatusOptions("All states", STATES) },
          ]}
          values={values}
          change={change}
          count={`${matches?.length} of ${all.length}`}
        />
      )}
      <Listing
        list={{ ...read, data: matches }}
        label="Runners"
        row={(one) => <RunnerRow runner={one} open={() => change({ runner: one.id })} />}
        empty={!empty
          ? <NoMatches clear={() => change({ find: "", state: "" })} />
          : (
            <Empty title="No runners yet.">
              <p>
                All workers run on the service's machine. A runner is another machine that runs workers, e.g.
                with a GPU or macOS. It needs the <code>svc</code>{" "}
                program, a token and a connection to this service. No port has to be opened.
              </p>
              {add}
            </Empty>
          )}
      />
      {selected !== undefined && (
        <RunnerDialog
          runner={selected}
          reload={read.reload}
          onClose={() => change({ runner: "" })}
        />
      )}
      {adding && (
        <RunnerForm
          onClose={(runner) => {
            setAdding(false);
            if (runner !== undefined) setCreated(runner);
            read.reload();
          }}
        />
      )}
      {created !== null && <RunnerTokenDialog {...created} onClose={() => setCreated(null)} />}
    </>
  );
}

function includesText({ name, labels, engines }: Runner, text: string): boolean {
  return [name, ...labels, ...engines].some((one) => one.toLowerCase().includes(text.toLowerCase()));
}

function RunnerRow({ runner, open }: { runner: Runner; open: () => void }) {
  const { name, labels, state, draining, engines, version, running, max_runs, last_seen_at } = runner;
  return (
    <Row
      press={open}
      status={last_seen_at === null ? "awaited" : state}
      title={name}
      notes={[labels.join(", ") || "no labels", engines.join(", "), version, draining && "draining"]}
      side={last_seen_at === null ? <span>not connected yet</span> : (
        <>
          <span>{running} of {max_runs} runs</span>
          <span>
            seen <Ago at={last_seen_at} />
          </span>
        </>
      )}
    />
  );
}
