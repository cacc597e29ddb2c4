/**
 * Owns: saying that the server has a newer build of the page. This one goes on, but without what it has not loaded yet,
 * and its calls are those of the older one.
 */
import { useEffect, useRef, useState } from "react";
import { onMissingPart } from "./text/missing-part.ts";
import { useLink } from "./use-models.ts";

export function NewVersion() {
  const { kind } = useLink();
  const [isOutdated, setOutdated] = useState(false);
  const wasLost = useRef(false);

  const look = () => {
    servesAnother().then(
      (another) => another && setOutdated(true),
      () => undefined,
    );
  };
  // A server is started anew for a new version.
  useEffect(() => {
    if (kind === "lost") wasLost.current = true;
    if (kind !== "connected" || !wasLost.current) return;
    wasLost.current = false;
    look();
  }, [kind]);
  useEffect(() => onMissingPart(look), []);

  return (
    <div role="status">
      {isOutdated && (
        <div className="new-version">
          <span>The server has a newer version of this page. What you have written stays.</span>
          <button className="primary" onClick={() => window.location.reload()}>
            Reload
          </button>
        </div>
      )}
    </div>
  );
}

/** The names of the page's programs contain digests of their content. */
async function servesAnother(): Promise<boolean> {
  const own = document.querySelector("script[src]")?.getAttribute("src") ?? "";
  const response = await fetch("/", { headers: { accept: "text/html" }, cache: "no-cache" });
  const html = response.ok ? await response.text() : "";
  // A proxy in between may answer with a page of its own.
  return html.includes('id="root"') && !html.includes(`"${own}"`);
}
