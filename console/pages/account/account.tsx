import { LogOut } from "lucide-preact";
import { useGet } from "../../live/resource.ts";
import { signOut, username } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { LoadState } from "../../parts/notice.tsx";
import { Facts, Heading, Section } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";
import { Devices } from "./devices.tsx";
import { PasswordForm } from "./password.tsx";
import { Tokens } from "./tokens.tsx";

export function Page() {
  const name = username.value;
  const read = useGet("/api/users/{id_or_name}", { path: { id_or_name: name } }, /^user\./);
  const user = read.data;
  return (
    <>
      <Heading title={name}>
        <Button icon={LogOut} press={signOut}>Sign out of this browser</Button>
      </Heading>
      <div class="scrolled">
        {user === undefined ? <LoadState error={read.error} /> : (
          <>
            <Facts
              values={{
                "Role": user.role,
                "Last sign-in": <Ago at={user.last_login_at} />,
              }}
            />
            <Devices userId={user.id} />
            <Tokens userId={user.id} />
            <Section title="Password">
              {user.origin === "oidc"
                ? <p class="quiet">You sign in with your OpenID provider and have no password here.</p>
                : <PasswordForm user={user} />}
            </Section>
          </>
        )}
      </div>
    </>
  );
}
