/** Owns: what the build gives the page (local/build-web.mjs). */

/** The address of `stream-worker.ts`, built: for `new SharedWorker(STREAM_WORKER_URL, { type: "module" })`. */
declare const STREAM_WORKER_URL: string;

/** The address of `text-worker.ts`, built: for `new Worker(TEXT_WORKER_URL, { type: "module" })`. */
declare const TEXT_WORKER_URL: string;

/** The package has no types. */
declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  type Options = {
    readonly url: string;
    readonly domNode: HTMLElement;
    readonly deepLinking: boolean;
    readonly docExpansion: "list" | "full" | "none";
    readonly defaultModelsExpandDepth: number;
    readonly validatorUrl: null;
  };
  export default function swaggerUi(options: Options): unknown;
}
