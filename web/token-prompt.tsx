/** Owns: asking for the API's token. */
import { useState } from "react";
import { MAIN } from "./focus.ts";

export function TokenPrompt({
  wasRefused,
  onToken,
}: {
  readonly wasRefused: boolean;
  readonly onToken: (token: string) => void;
}) {
  const [token, setToken] = useState("");
  return (
    <main id={MAIN} tabIndex={-1} className="centred">
      <form
        className="card token"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") onToken(token.trim());
        }}
      >
        <h1>This server asks for a token</h1>
        <p>
          It is the <code>API_TOKEN</code> that the server was started with. This tab keeps it until you close
          it.
        </p>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          autoFocus
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-invalid={wasRefused}
          aria-describedby="token-problem"
        />
        <p id="token-problem" role="alert" className="bad">
          {wasRefused ? "The server did not accept the token. Check it and try again." : ""}
        </p>
        <button className="primary" type="submit" disabled={token.trim() === ""}>
          Continue
        </button>
      </form>
    </main>
  );
}
