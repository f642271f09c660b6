import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { RESOURCES } from "../../../src/domain/call/vocabulary.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { splitWords } from "../../parts/field.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { Row, ShortListing } from "../../parts/listing.tsx";
import { Section } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";

type Token = Schemas["Token"];

export function Tokens({ userId }: { userId: string }) {
  const [creating, setCreating] = useState(false);
  const list = useList("/api/tokens", { user: userId }, /^token\./);
  return (
    <Section
      title="Tokens"
      actions={<Button icon={Plus} press={() => setCreating(true)}>New token</Button>}
    >
      <ShortListing
        list={list}
        empty="No tokens yet. Create one to let a program use the API with some of your scopes."
        row={(token) => <TokenRow token={token} reload={list.reload} />}
      />
      {creating && <TokenForm onClose={() => (setCreating(false), list.reload())} />}
    </Section>
  );
}

function TokenRow({ token, reload }: { token: Token; reload: () => void }) {
  const { id, name, scopes, expires_at, last_used_at } = token;
  const params = { path: { id } };
  return (
    <Row
      title={name}
      notes={[scopes.join(" ")]}
      side={
        <>
          <span>
            {expires_at === null ? "never expires" : (
              <>
                expires <Ago at={expires_at} />
              </>
            )}
          </span>
          <span>
            {last_used_at === null ? "never used" : (
              <>
                used <Ago at={last_used_at} />
              </>
            )}
          </span>
        </>
      }
    >
      <Button
        class="small danger"
        label={`Revoke ${name}`}
        confirm={{
          title: `Revoke ${name}?`,
          text: "Programs that use this token lose access immediately.",
          action: "Revoke token",
        }}
        press={() => load(api.DELETE("/api/tokens/{id}", { params }))}
        done="Revoked"
        after={reload}
      >
        Revoke
      </Button>
    </Row>
  );
}

const DAY_MS = 24 * 3_600_000;
const LIFETIMES = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "1 year"],
  ["", "Never"],
] as const;

function TokenForm({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<{ name: string; token: string } | null>(null);
  const form = useForm({
    initial: { name: "", scopes: "", days: "90" },
    async send({ name, scopes, days }) {
      const expires_at = days === "" ? null : secondNow.value + Number(days) * DAY_MS;
      const body = { name, scopes: splitWords(scopes), expires_at };
      setCreated(await load(api.POST("/api/tokens", { body })));
    },
  });
  const available = RESOURCES.flatMap((one) => [`read:${one}`, `write:${one}`]).filter(hasScope);
  return (
    <FormDialog
      form={form}
      title="New token"
      action="Create token"
      onClose={onClose}
      secret={created && {
        title: `Token ${created.name}`,
        text: "Send it with each request as “Authorization: Bearer …”.",
        secret: created.token,
      }}
      fields={[
        { name: "name", label: "Name", required: true, autofocus: true },
        {
          name: "scopes",
          label: "Scopes",
          placeholder: "read:tasks write:tasks",
          required: true,
          values: { title: "Available scopes", names: available },
        },
        { name: "days", label: "Expires", options: LIFETIMES },
      ]}
    />
  );
}
