/** Imported for its effect: a worker's comings and goings are not news in a test. Once a process. */
import { DefaultLogger, Runtime } from "@temporalio/worker";

Runtime.install({ logger: new DefaultLogger("ERROR"), shutdownSignals: [] });
