// The paths of ploy's server. Ids come from outside: none can leave its place in a path.

/** What no path can have, half of a surrogate pair or nothing but dots, gets another character: it is nobody else's id then. */
const part = (id: string): string =>
  encodeURIComponent(/^\.\.?$/.test(id) ? id.replaceAll('.', '\ufffd') : Buffer.from(id).toString());

export const endpoints = {
  claim: (nodeId: string) => `/v1/nodes/${part(nodeId)}/claim`,
  heartbeat: (nodeId: string) => `/v1/nodes/${part(nodeId)}/heartbeat`,
  diagnostics: (nodeId: string) => `/v1/nodes/${part(nodeId)}/diagnostics`,
  logs: (nodeId: string) => `/v1/nodes/${part(nodeId)}/logs`,
  events: (nodeId: string) => `/v1/nodes/${part(nodeId)}/events`,
  jobStatus: (jobId: string) => `/v1/jobs/${part(jobId)}/status`,
  complete: (jobId: string) => `/v1/jobs/${part(jobId)}/complete`,
  image: (jobId: string) => `/v1/jobs/${part(jobId)}/image`,
  sbom: (jobId: string) => `/v1/jobs/${part(jobId)}/sbom`,
  diff: (runId: string, jobId: string) => `/v1/runs/${part(runId)}/jobs/${part(jobId)}/diff`,
  artifact: (runId: string, jobId: string) => `/v1/runs/${part(runId)}/jobs/${part(jobId)}/artifact`,
  snapshot: (runId: string) => `/v1/runs/${part(runId)}/snapshot`,
  specBundle: (bundleId: string) => `/v1/spec-bundles/${part(bundleId)}`,
  bootstrap: '/v1/pki/bootstrap',
} as const;
