/** Version of the package, put in by the build. */
declare const SDK_VERSION: string;
/** The worker's script, for browsers and pages that allow a worker from a `blob:` address; put in by the build. */
declare const WORKER_SCRIPT: string;
