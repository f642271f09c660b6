import { useState } from "preact/hooks";
import { UserPlus } from "lucide-preact";
import { api, ask, type Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { durationText, manyText } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt, say } from "../../parts/toast.tsx";
import { PairForm } from "./pairing_form.tsx";

type Platform = Schemas["Platform"];
type Sender = Schemas["PlatformSender"];

// The console itself, which needs no connection and no pairing.
const OWN = "local";

/** Where people talk from: connections, what waits for them, and who may speak (contract 10). */
export function PlatformsPage() {
  const [pairing, setPairing] = useState(false);
  const read = useResource(
    "platforms",
    (signal) => ask(api.GET("/api/platforms", { signal })),
    ({ kind }) => /^(platform|message)\./.test(kind),
  );
  const outside = read.data?.filter(({ kind }) => kind !== OWN);
  return (
    <>
      <Heading title="Platforms">
        {may("write:platforms") && outside !== undefined && outside.length > 0 && (
          <button
            type="button"
            class="primary"
            onClick={() => setPairing(true)}
          >
            <UserPlus size={16} aria-hidden="true" /> Let somebody in
          </button>
        )}
      </Heading>
      <div class="scrolled">
        {outside === undefined
          ? <Waiting refusal={read.refusal} />
          : outside.length === 0
          ? (
            <Empty title="No chat platform is connected.">
              <p>
                People write in this console alone. To let them write from the chat program that they use,
                name it in <code>config.yaml</code>, below <code>platforms</code>, and restart the service.
              </p>
            </Empty>
          )
          : (
            <ul class="cards">
              {outside.map((platform) => <PlatformCard key={platform.name} platform={platform} />)}
            </ul>
          )}
      </div>
      {pairing && <PairForm onClose={() => setPairing(false)} />}
    </>
  );
}

function PlatformCard({ platform }: { platform: Platform }) {
  const { name, kind, state, since, error, last_event_at, waiting, waiting_since } = platform;
  async function test(): Promise<void> {
    await attempt(async () => {
      const params = { path: { name } };
      const { ok, detail } = await ask(api.POST("/api/platforms/{name}/test", { params }));
      say(detail || (ok ? "It answers" : "It does not answer"), !ok);
    });
  }
  return (
    <li class="card">
      <div class="card-head">
        <h2>{name}</h2>
        <Status of={state} />
      </div>
      <p class="quiet">
        {kind}, in this state for {durationText(Math.max(0, now.value - since))}
      </p>
      {error !== "" && <p class="wrong">{error}</p>}
      <p>
        {last_event_at === null ? "Nothing came yet." : (
          <>
            The last message came <Ago at={last_event_at} />.
          </>
        )}
      </p>
      {waiting > 0 && (
        <p>
          {manyText(waiting, "reply waits", "replies wait")}, the oldest since <Ago at={waiting_since} />.
        </p>
      )}
      <Senders name={name} />
      {may("write:platforms") && (
        <div class="actions">
          <Act class="small" label={`Test ${name}`} run={() => test()}>
            Test
          </Act>
        </div>
      )}
    </li>
  );
}

function Senders({ name }: { name: string }) {
  const read = useResource(
    name,
    (signal) => ask(api.GET("/api/platforms/{name}/senders", { params: { path: { name } }, signal })),
    ({ kind }) => kind.startsWith("platform."),
  );
  const senders = read.data ?? [];
  if (senders.length === 0) return null;
  return (
    <details open>
      <summary>{manyText(senders.length, "person", "people")} let in</summary>
      <ul>
        {senders.map((sender) => (
          <SenderRow key={sender.id} platform={name} sender={sender} reload={read.reload} />
        ))}
      </ul>
    </details>
  );
}

interface SenderProps {
  platform: string;
  sender: Sender;
  reload: () => void;
}

function SenderRow({ platform, sender, reload }: SenderProps) {
  const { id, name, paired_by, created_at } = sender;
  async function revoke(): Promise<void> {
    const yes = await confirmed({
      title: `Shut ${name || id} out?`,
      text: "What they write is not heard any more. What was said stays.",
      action: "Shut them out",
    });
    if (!yes) return;
    const params = { path: { name: platform, sender: id } };
    await attempt(() => ask(api.DELETE("/api/platforms/{name}/senders/{sender}", { params })), "Shut out");
    reload();
  }
  return (
    <li class="sender">
      <span>
        {name || id}{" "}
        <span class="quiet">
          {id}, by {paired_by}, <Ago at={created_at} />
        </span>
      </span>
      {may("write:platforms") && (
        <Act
          class="small danger"
          label={`Shut out ${name || id}`}
          run={() => revoke()}
        >
          Shut out
        </Act>
      )}
    </li>
  );
}
