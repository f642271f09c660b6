import { Check, RotateCcw } from "lucide-preact";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { inbox } from "../../live/inbox.ts";
import { buildItemKey } from "../../live/notifications.ts";
import { useOpenQuestions } from "../../live/questions.ts";
import { useGet } from "../../live/resource.ts";
import { findWorkerName, workers } from "../../live/workers.ts";
import { AnswerForm, ToolCall } from "../../parts/answer_form.tsx";
import { Button, LinkButton } from "../../parts/button.tsx";
import { Empty, Loading } from "../../parts/notice.tsx";
import { Heading, Section } from "../../parts/page.tsx";
import { type Selection, useSelection } from "../../parts/selection.ts";
import { Status } from "../../parts/status.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { Ago } from "../../parts/time.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { WelcomePage } from "../workers/welcome.tsx";
import { BulkBar } from "./bulk_bar.tsx";
import { ExecutionList } from "./execution_row.tsx";
import { dismissItems, retryItems } from "./inbox_actions.ts";
import { FAILURES, groupItems, type InboxItem, isDismissible } from "./inbox_groups.ts";
import { InboxGroupRow, SnoozeMenu } from "./inbox_item.tsx";

const RUNNING_SHOWN = 20;

export function Page() {
  const all = workers.value;
  if (all === undefined) return <Loading />;
  return all.length === 0 ? <WelcomePage /> : <Inbox />;
}

/** The tabs, with the kinds of items in each. */
const TABS: readonly { id: string; name: string; kinds: readonly InboxItem["kind"][] }[] = [
  { id: "questions", name: "Questions", kinds: ["question"] },
  { id: "failures", name: "Failures", kinds: FAILURES },
  {
    id: "blocked",
    name: "Blocked and paused",
    kinds: [
      ...["engine_limited", "budget_holds", "schedule_paused", "worker_paused"] as const,
      ...["launcher_paused", "push_failed", "secret_lost"] as const,
    ],
  },
];

function Inbox() {
  const query = { status: "pending,running", page_size: RUNNING_SHOWN };
  const running = useGet("/api/executions", { query }, /^execution\./);
  return (
    <>
      <Heading title="Inbox">
        <LinkButton href="/console/chat" class="primary">Open the chat</LinkButton>
      </Heading>
      <div class="scrolled">
        {inbox.value === undefined ? <Loading /> : <InboxItems items={inbox.value} />}
        <Section title="Running now">
          <ExecutionList list={running} empty="No active runs." />
        </Section>
      </div>
    </>
  );
}

function InboxItems({ items }: { items: readonly InboxItem[] }) {
  const [{ tab }] = useAddress("tab");
  const questions = useOpenQuestions() ?? [];
  const kinds = TABS.find(({ id }) => id === tab)?.kinds;
  const listed = kinds === undefined ? items : items.filter(({ kind }) => kinds.includes(kind));
  const selection = useSelection(listed.map((item) => ({ id: buildItemKey(item) })));
  const others = listed.filter(({ kind }) => kind !== "question");
  // A snoozed question is not in the inbox, and an answered one no longer among the open ones.
  const asked = questions.filter(({ id }) =>
    listed.some((item) => item.kind === "question" && item.id === id)
  );
  if (items.length === 0) {
    return (
      <Empty title="Nothing needs your attention.">
        <p>Questions, failures, undelivered replies and blocked or paused work appear here.</p>
      </Empty>
    );
  }
  return (
    <>
      <Tabs label="Inbox" current={tab === "" ? "/" : `/?tab=${tab}`} tabs={listTabs(items)} />
      <InboxBulkBar
        items={others.filter((item) => selection.ids.has(buildItemKey(item)))}
        selection={selection}
      />
      {listed.length === 0 ? <Empty title="Nothing here." /> : (
        <div class="list inbox">
          {asked.map((one) => <QuestionRow key={one.id} question={one} />)}
          {groupItems(others).map((group) => (
            <InboxGroupRow key={group.key} group={group} selection={selection} />
          ))}
        </div>
      )}
    </>
  );
}

function listTabs(items: readonly InboxItem[]): [string, string][] {
  return [
    ["/", `All (${items.length})`],
    ...TABS.map(({ id, name, kinds }): [string, string] => [
      `/?tab=${id}`,
      `${name} (${items.filter(({ kind }) => kinds.includes(kind)).length})`,
    ]),
  ];
}

function InboxBulkBar({ items, selection }: { items: readonly InboxItem[]; selection: Selection }) {
  const failed = items.filter(({ kind }) => kind === "run_failed");
  const dismissible = items.filter(isDismissible);
  return (
    <BulkBar selection={selection}>
      {failed.length > 0 && (
        <Button
          class="small"
          scope="write:executions"
          icon={RotateCcw}
          press={() => retryItems(failed)}
        >
          Run {failed.length} again
        </Button>
      )}
      {dismissible.length > 0 && (
        <Button class="small" icon={Check} press={() => dismissItems(dismissible)}>
          Dismiss {dismissible.length}
        </Button>
      )}
      <SnoozeMenu items={items} label={`Snooze ${items.length}`} />
    </BulkBar>
  );
}

function QuestionRow({ question }: { question: Schemas["Question"] }) {
  const { text, worker_id, session_key, created_at } = question;
  return (
    <div class="row asked">
      <Status value="question" bare />
      <span class="row-main">
        {question.tool === "" ? <span class="asked-text">{text}</span> : <ToolCall question={question} />}
        <span class="row-note">
          {findWorkerName(worker_id) || "A worker"} asks in <ConversationLink sessionKey={session_key} />,
          {" "}
          <Ago at={created_at} />
        </span>
        <AnswerForm question={question} />
      </span>
    </div>
  );
}
