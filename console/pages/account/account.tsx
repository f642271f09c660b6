import { LogOut } from "lucide-preact";
import { api, ask } from "../../live/api.ts";
import { canNotify, notifying, setNotifying } from "../../live/notifications.ts";
import { useResource } from "../../live/resource.ts";
import { signOut, username } from "../../live/session.ts";
import { Fact, Facts } from "../../parts/facts.tsx";
import { Tick } from "../../parts/field.tsx";
import { Heading } from "../../parts/page.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";
import { PasswordForm } from "./password_form.tsx";
import { Tokens } from "./tokens.tsx";

/** Who is signed in, with the password and the tokens that are theirs (contract 9). */
export function AccountPage() {
  const name = username.value;
  const read = useResource(
    name,
    (signal) => {
      const path = { id_or_name: name };
      return ask(api.GET("/api/users/{id_or_name}", { params: { path }, signal }));
    },
    ({ kind }) => kind.startsWith("user."),
  );
  const user = read.data;
  return (
    <>
      <Heading title={name}>
        <button type="button" onClick={() => void signOut()}>
          <LogOut size={16} aria-hidden="true" /> Sign out here
        </button>
      </Heading>
      <div class="scrolled">
        {user === undefined ? <Waiting refusal={read.refusal} /> : (
          <>
            <Facts>
              <Fact name="Role">{user.role}</Fact>
              <Fact name="Last sign-in">
                <Ago at={user.last_login_at} />
              </Fact>
            </Facts>
            {canNotify() && (
              <Tick
                label="Tell me in this browser when something needs me"
                checked={notifying.value}
                onChange={(on) => void setNotifying(on)}
              />
            )}
            <Tokens userId={user.id} />
            <section>
              <h2>Your password</h2>
              {user.origin === "oidc"
                ? <p class="quiet">You sign in with your OpenID provider and have none here.</p>
                : <PasswordForm user={user} />}
            </section>
          </>
        )}
      </div>
    </>
  );
}
