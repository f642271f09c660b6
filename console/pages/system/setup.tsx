import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { Button } from "../../parts/button.tsx";
import { LoadState, Notice } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { CopyButton } from "../../parts/short_id.tsx";

type Guide = Schemas["SetupGuide"];
type Result = Schemas["ConfigCheck"];

const ABOVE = { href: "/console/system/settings", name: "Settings" };

/** A guide to set up an engine or a platform. It writes nothing: it shows the lines to add, and checks them. */
export function Page() {
  const [{ for: kind }, change] = useAddress("for");
  const { data, error } = useGet("/api/system/config", {});
  const guide = data?.guides.find((one) => one.kind === kind);
  return (
    <>
      <Heading title="Set up an engine or a platform" above={ABOVE} />
      <div class="scrolled">
        {data === undefined ? <LoadState error={error} /> : (
          <>
            <div class="field setup-choice">
              <label for="setup-kind">Engine or platform</label>
              <select
                id="setup-kind"
                value={kind}
                onChange={(event) => change({ for: event.currentTarget.value })}
              >
                <option value="">Choose</option>
                <Options label="Engines" guides={data.guides.filter(({ group }) => group === "engine")} />
                <Options label="Platforms" guides={data.guides.filter(({ group }) => group === "platform")} />
              </select>
            </div>
            {guide !== undefined && <GuideSteps key={kind} guide={guide} path={data.path} />}
          </>
        )}
      </div>
    </>
  );
}

function Options({ label, guides }: { label: string; guides: readonly Guide[] }) {
  return (
    <optgroup label={label}>
      {guides.map(({ kind, title }) => <option key={kind} value={kind}>{title}</option>)}
    </optgroup>
  );
}

function GuideSteps(
  { guide: { group, kind, steps, files, yaml }, path }: { guide: Guide; path: string | null },
) {
  return (
    <ol class="steps-list">
      {steps.map((step) => <li key={step}>{step}</li>)}
      {group === "engine" && <EngineState kind={kind} />}
      {files.map((file) => (
        <li key={file.path}>
          <p>
            Save the {file.content}{" "}
            in a file that only the service can read. Run this as the service's user, paste the{" "}
            {file.content}, and press Ctrl-D. If that user cannot write to this directory, choose another path
            here and in the lines below:
          </p>
          <p class="secret">
            <code>install -m 600 /dev/stdin {file.path}</code>
            <CopyButton text={`install -m 600 /dev/stdin ${file.path}`} subject="command" />
          </p>
        </li>
      ))}
      <Lines initial={yaml} path={path} />
      <li>
        Restart the service. Then {group === "platform"
          ? (
            <>
              test the connection on <Link href="/console/platforms">Platforms</Link>.
            </>
          )
          : (
            <>
              see whether the engine is OK on <Link href="/console/budgets">Budgets and engines</Link>.
            </>
          )}
      </li>
    </ol>
  );
}

function EngineState({ kind }: { kind: string }) {
  const engine = useGet("/api/engines", {}).data?.find(({ name }) => name === kind);
  if (engine === undefined) return null;
  return (
    <li>
      {engine.usable ? <>The program is installed. {engine.version}</> : <>Not ready: {engine.detail}</>}
    </li>
  );
}

function Lines({ initial, path }: { initial: string; path: string | null }) {
  const [lines, setLines] = useState(initial);
  const [result, setResult] = useState<Result | null>(null);
  async function check(): Promise<void> {
    setResult(await load(api.POST("/api/system/config/check", { body: { yaml: lines } })));
  }
  return (
    <li>
      <label for="setup-lines">
        Change these lines to your needs, then add them to {path === null
          ? <>a file config.yaml in the directory in which the service starts</>
          : <code>{path}</code>}.
      </label>
      <textarea
        id="setup-lines"
        class="snippet"
        rows={lines.split("\n").length}
        spellcheck={false}
        value={lines}
        onInput={(event) => (setLines(event.currentTarget.value), setResult(null))}
      />
      <div class="actions">
        <Button press={check} class="primary">Check the lines</Button>
        <CopyButton text={lines} subject="lines" />
      </div>
      <div role="status">{result !== null && <CheckResult result={result} />}</div>
    </li>
  );
}

function CheckResult({ result: { valid, problems, present } }: { result: Result }) {
  return (
    <>
      {valid && <Notice>The lines are valid. Nothing was stored.</Notice>}
      {problems.map(({ line, column, message }) => (
        <Notice key={message} tone="bad">
          Line {line}, column {column}: {message}
        </Notice>
      ))}
      {present.map((key) => (
        <Notice key={key} tone="warn">
          The file already has <code>{key}:</code>. Add the lines below it, without this first line.
        </Notice>
      ))}
    </>
  );
}
