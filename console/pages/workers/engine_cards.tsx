import { api, load, type Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { useGet } from "../../live/resource.ts";
import { Button } from "../../parts/button.tsx";
import { formatTime } from "../../parts/format.ts";
import { Meter } from "../../parts/meter.tsx";
import { LoadState } from "../../parts/notice.tsx";
import { Section } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";

type Engine = Schemas["Engine"];

const NEARLY_FULL = 0.8;

export function Engines() {
  const read = useGet("/api/engines", {}, /^engine\.|^execution\.completed$/);
  const engines = read.data;
  const cards = (usable: boolean) => (
    <ul class="cards">
      {engines?.filter((engine) => engine.usable === usable)
        .map((engine) => <EngineCard key={engine.name} engine={engine} reload={read.reload} />)}
    </ul>
  );
  const missing = engines?.filter(({ usable }) => !usable).length ?? 0;
  return (
    <Section title="Engines">
      {engines === undefined ? <LoadState error={read.error} /> : cards(true)}
      {missing > 0 && (
        <details class="others">
          <summary>{missing} not installed</summary>
          {cards(false)}
        </details>
      )}
    </Section>
  );
}

function EngineCard({ engine, reload }: { engine: Engine; reload: () => void }) {
  const { name, usable, version, gateway, fallback, detail, windows, limited_until } = engine;
  const limited = limited_until !== null && limited_until > now.value;
  return (
    <li>
      <div class="card-head">
        <h3>{name}</h3>
        <Status value={limited ? "limited" : usable ? "ok" : "missing"} />
      </div>
      <p class="quiet">
        {[
          engine.default ? "default" : "",
          version,
          gateway && `gateway ${gateway}`,
          fallback.length > 0 && `fallback ${fallback.join(", ")}`,
        ].filter(Boolean).join(", ")}
        {!usable && detail}
      </p>
      {windows.map((window) => <UsageWindow key={window.name} engine={name} window={window} />)}
      {limited && (
        <>
          <p class="hint">
            Rate-limited by its provider until {formatTime(limited_until)}. Tasks are waiting.
          </p>
          <div class="actions">
            <Button
              scope="write:engines"
              class="small"
              label={`Try again now: ${name}`}
              press={() => load(api.POST("/api/engines/{name}/lift", { params: { path: { name } } }))}
              done={`${name} resumed`}
              after={reload}
            >
              Try again now
            </Button>
          </div>
        </>
      )}
    </li>
  );
}

function UsageWindow({ engine, window }: { engine: string; window: Engine["windows"][number] }) {
  const { name, utilization, resets_at, seen_at } = window;
  const text = `${Math.round(utilization * 100)} %`;
  return (
    <div>
      <Meter
        label={`${engine}, ${name}`}
        share={utilization}
        text={text}
        state={utilization >= 1 ? "hard" : utilization >= NEARLY_FULL ? "soft" : "ok"}
      />
      <p>
        {name.replaceAll("_", " ")}: {text}{" "}
        <span class="quiet">
          {resets_at !== null && (
            <>
              resets <Ago at={resets_at} />,{" "}
            </>
          )}
          updated <Ago at={seen_at} />
        </span>
      </p>
    </div>
  );
}
