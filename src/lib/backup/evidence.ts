// How far a dump is proven. Apart from the documents, whose schemas would cost a tick its start-up.

/** How far a dump is proven, from least to most; `broken`: it was looked at and is not whole. */
export const evidenceLevels = ['broken', 'uploaded', 'readable', 'restored'] as const;
export type EvidenceLevel = (typeof evidenceLevels)[number];
