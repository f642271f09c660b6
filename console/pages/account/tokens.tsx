import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, ask, askPage, type Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { TokenForm } from "./token_form.tsx";

type Token = Schemas["Token"];

const PAGE_SIZE = 50;

/** One's own tokens for programs: made here, shown once, revoked here (contract 9). */
export function Tokens({ userId }: { userId: string }) {
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  const list = useList<Token>(userId, (cursor, signal) => {
    const query = { user: userId, page_size: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
    return askPage(api.GET("/api/tokens", { params: { query }, signal }));
  }, ({ kind }) => kind.startsWith("token."));
  const items = list.data;
  return (
    <section>
      <div class="section-head">
        <h2>Tokens for programs</h2>
        <button type="button" onClick={() => setMaking(true)}>
          <Plus size={16} aria-hidden="true" /> New token
        </button>
      </div>
      {items === undefined
        ? <Waiting refusal={list.refusal} />
        : items.length === 0
        ? <p class="quiet">None. A program signs in with one, and may no more than you and than it says.</p>
        : (
          <ul class="list">
            {items.map((token) => <TokenRow key={token.id} token={token} reload={list.reload} />)}
          </ul>
        )}
      {items !== undefined && Number(list.total) > items.length && (
        <button type="button" onClick={list.more}>More</button>
      )}
      {making && (
        <TokenForm
          onClose={(secret) => {
            setMaking(false);
            if (secret !== undefined) setMade(secret);
            list.reload();
          }}
        />
      )}
      {made !== null && (
        <SecretOnce
          title={`The token ${made.name}`}
          text="A program sends it as “Authorization: Bearer …”."
          secret={made.token}
          onClose={() => setMade(null)}
        />
      )}
    </section>
  );
}

function TokenRow({ token, reload }: { token: Token; reload: () => void }) {
  const { id, name, scopes, expires_at, last_used_at } = token;
  async function revoke(): Promise<void> {
    const yes = await confirmed({
      title: `Revoke ${name}?`,
      text: "Programs that use it are refused from now on.",
      action: "Revoke the token",
    });
    if (!yes) return;
    await attempt(() => ask(api.DELETE("/api/tokens/{id}", { params: { path: { id } } })), "Revoked");
    reload();
  }
  return (
    <li class="row whole">
      <span class="row-main">
        <span class="row-title">{name}</span>
        <span class="row-note">{scopes.join(" ")}</span>
      </span>
      <span class="row-side">
        <span>
          {expires_at === null ? "never ends" : (
            <>
              ends <Ago at={expires_at} />
            </>
          )}
        </span>
        <span>
          {last_used_at === null ? "not used" : (
            <>
              used <Ago at={last_used_at} />
            </>
          )}
        </span>
      </span>
      <Act class="small danger" label={`Revoke ${name}`} run={() => revoke()}>
        Revoke
      </Act>
    </li>
  );
}
