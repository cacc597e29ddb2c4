/** Imported for its effect, once a process: hides the log lines of workers that start and stop. */
import { DefaultLogger, Runtime } from "@temporalio/worker";

Runtime.install({ logger: new DefaultLogger("ERROR"), shutdownSignals: [] });
