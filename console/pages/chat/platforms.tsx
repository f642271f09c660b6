import { UserPlus } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { formatDuration, pluralize } from "../../parts/format.ts";
import { ShortListing } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { showToast } from "../../parts/toast.tsx";
import { PairingForm } from "./pairing_form.tsx";

// The console itself needs no connection and no pairing.
const CONSOLE = "local";
const SETUP = "/console/system/setup";

export function Page() {
  const [pairing, setPairing] = useState(false);
  const read = useGet("/api/platforms", {}, /^(platform|message)\./);
  const platforms = read.data?.filter(({ kind }) => kind !== CONSOLE);
  return (
    <>
      <Heading title="Platforms">
        {platforms !== undefined && platforms.length > 0 && (
          <>
            <LinkButton scope="write:system" href={SETUP}>Add a platform</LinkButton>
            <Button
              scope="write:platforms"
              class="primary"
              icon={UserPlus}
              press={() => setPairing(true)}
            >
              Pair a sender
            </Button>
          </>
        )}
      </Heading>
      <div class="scrolled">
        <ShortListing
          list={{ ...read, data: platforms?.map((one) => ({ ...one, id: one.name })) }}
          class="cards"
          row={(platform) => <PlatformCard platform={platform} />}
          empty={
            <Empty title="No chat platforms yet.">
              <p>
                {hasScope("write:system") && (
                  <>
                    To connect one, <Link href={SETUP}>follow the guide</Link>.
                  </>
                )} Until then users write in this console.
              </p>
            </Empty>
          }
        />
      </div>
      {pairing && <PairingForm onClose={() => setPairing(false)} />}
    </>
  );
}

function PlatformCard({ platform }: { platform: Schemas["Platform"] }) {
  const { name, kind, state, since, error, last_event_at, waiting, waiting_since } = platform;
  async function test(): Promise<void> {
    const { ok, detail } = await load(
      api.POST("/api/platforms/{name}/test", { params: { path: { name } } }),
    );
    showToast(detail || (ok ? "Connection works" : "No response"), !ok);
  }
  return (
    <>
      <div class="card-head">
        <h2>{name}</h2>
        <Status value={state} />
      </div>
      <p class="quiet">{kind}, for {formatDuration(Math.max(0, now.value - since))}</p>
      {error !== "" && <p class="wrong">{error}</p>}
      <p>
        {last_event_at === null ? "No messages yet." : (
          <>
            Last message <Ago at={last_event_at} />.
          </>
        )}
      </p>
      {waiting > 0 && (
        <p>
          {pluralize(waiting, "reply", "replies")} waiting, the oldest from <Ago at={waiting_since} />.
        </p>
      )}
      <Senders name={name} />
      {hasScope("write:platforms") && (
        <div class="actions">
          <Button class="small" label={`Test ${name}`} press={test}>Test</Button>
        </div>
      )}
    </>
  );
}

function Senders({ name }: { name: string }) {
  const read = useGet("/api/platforms/{name}/senders", { path: { name } }, /^platform\./);
  const senders = read.data ?? [];
  if (senders.length === 0) return null;
  return (
    <details open>
      <summary>{pluralize(senders.length, "paired sender")}</summary>
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
  sender: Schemas["PlatformSender"];
  reload: () => void;
}

function SenderRow({ platform, sender, reload }: SenderProps) {
  const { id, name, paired_by, created_at } = sender;
  const params = { path: { name: platform, sender: id } };
  return (
    <li class="sender">
      <span>
        {name || id}{" "}
        <span class="quiet">
          {id}, paired by {paired_by}, <Ago at={created_at} />
        </span>
      </span>
      <Button
        scope="write:platforms"
        class="small danger"
        label={`Unpair ${name || id}`}
        confirm={{
          title: `Unpair ${name || id}?`,
          text: "The service ignores their messages. Earlier messages are kept.",
          action: "Unpair sender",
        }}
        press={() => load(api.DELETE("/api/platforms/{name}/senders/{sender}", { params }))}
        done="Unpaired"
        after={reload}
      >
        Unpair
      </Button>
    </li>
  );
}
