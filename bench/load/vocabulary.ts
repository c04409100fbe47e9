/** Words for the bench's own reasoning texts: plain, inoffensive, and enough for variety. */
const words = (text: string): readonly string[] => text.trim().split(/\s+/);

export const nouns = words(`
  backlog tariff harvest reactor licence subsidy shipment ballot inventory ceasefire budget
  pipeline turbine prototype auction verdict forecast quarter committee regulator supplier
  campaign coalition merger dividend payroll census outbreak vaccine trial dosage appeal statute
  treaty corridor port railway satellite launch orbit sensor battery electrode refinery smelter
  warehouse freight container tanker airline runway mortgage deposit bond yield currency reserve
  pension premium insurer audit ledger retailer franchise studio broadcast festival league
  fixture transfer stadium referee squad curriculum teacher enrolment scholarship campus
  laboratory grant patent benchmark dataset compiler cluster datacentre chip wafer foundry
  lithography substrate modem antenna spectrum roaming handset ransomware firewall breach
  credential exploit advisory botnet encryption passport visa border patrol convoy drone radar
  missile frigate brigade envoy embassy summit sanction embargo quota fishery drought reservoir
  wildfire glacier monsoon flood seedling fertiliser orchard livestock grain mill bakery
  restaurant hotel occupancy tourism ferry bridge tunnel tramway scooter charger sedan dealer
  recall warranty lawsuit plaintiff settlement injunction hearing docket clerk mayor province
  parish referendum turnout poll margin incumbent challenger manifesto donor lobby petition
  strike union wage vacancy overtime apprenticeship freelancer contractor invoice tender
  procurement consortium operator utility meter transformer substation interconnector storage
  hydrogen ammonia uranium lithium copper nickel cobalt steel cement timber plywood rental
  landlord zoning permit inspector archive museum orchestra publisher novel translation podcast
  newsroom column survey respondent cohort placebo endpoint biomarker clinic ward nurse surgeon
  transplant allergen pathogen mosquito`);

export const adjectives = words(`
  quarterly preliminary seasonal regional provisional binding unanimous reluctant cautious
  abrupt gradual persistent transient structural cyclical marginal sizeable modest sluggish
  brisk volatile orderly disputed audited revised lagging leading coincident domestic overseas
  coastal inland rural urban municipal federal bilateral multilateral informal statutory
  voluntary mandatory unpaid overdue scarce abundant idle saturated fragmented concentrated
  profitable insolvent leveraged hedged exposed insured experimental mature obsolete modular
  portable wireless optical thermal chemical organic synthetic clinical paediatric chronic acute
  dormant resilient brittle redundant parallel sequential adaptive manual automated supervised
  independent partisan neutral hostile friendly tentative ambitious conservative optimistic
  sceptical lukewarm fierce subdued noisy sparse dense weekly monthly annual biennial overnight
  interim final draft public confidential leaked verified anecdotal documented plausible remote
  imminent distant reversible irreversible contested popular obscure`);

export const verbs = words(`
  slipped widened narrowed doubled halved stalled recovered accelerated plateaued reversed
  outpaced trailed matched exceeded missed absorbed delayed advanced cancelled postponed
  approved rejected amended ratified suspended restored expanded trimmed reopened closed
  financed underwrote insured audited disclosed concealed revised confirmed contradicted
  strengthened weakened distorted smoothed offset amplified dampened triggered prevented
  preceded followed replaced supplemented duplicated tested piloted certified recalled repaired
  upgraded migrated inherited transferred auctioned leased purchased divested merged separated
  litigated settled arbitrated negotiated mediated vetoed endorsed criticised defended surveyed
  sampled weighted calibrated simulated modelled measured estimated extrapolated benchmarked
  ranked published archived translated broadcast leaked briefed`);

export const places = words(`
  Lisbon Rotterdam Gdansk Trieste Tallinn Bergen Aarhus Zurich Lyon Bilbao Antwerp Graz Brno
  Cluj Thessaloniki Izmir Haifa Amman Muscat Karachi Chennai Dhaka Penang Surabaya Cebu Busan
  Osaka Sapporo Harbin Chengdu Almaty Tbilisi Nairobi Kampala Lusaka Durban Accra Dakar
  Casablanca Valparaiso Rosario Recife Medellin Guayaquil Monterrey Halifax Winnipeg Boise Omaha
  Tulsa Dayton Perth Hobart Dunedin`);

export const sources = words(`
  port-registry.org grid-observatory.net clinicalnotes.eu freight-index.com court-digest.org
  harvestmonitor.net policy-ledger.eu labour-pulse.org orbit-tracker.net
  semiconductor-weekly.com central-bank-watch.org election-atlas.net water-levels.eu
  air-traffic-stats.org patentroom.com housing-barometer.eu metals-desk.com
  fisheries-bulletin.org campus-report.net security-advisories.eu mobility-figures.org
  film-receipts.com league-tables.net budget-office-review.org`);
