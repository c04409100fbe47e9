/** Reasoning as forecasters write it, in the usual layouts. All of it passes every gate. */
export const good_reasonings: readonly string[] = [
  `EVIDENCE
Headline inflation in the euro area came in at 2.4% in the latest flash estimate, down from 2.6% (https://ec.europa.eu/eurostat/web/products-euro-indicators/w/2-0104). Negotiated wages still grow by 4.3% a year, and services prices are sticky near 4%.

ANALYSIS
Three of the last four meetings ended with a cut of 25 basis points. Futures priced a further cut at 78% on Monday; my own count of speeches since the last meeting has nine members leaning towards easing and four against. See the account of the meeting: https://www.ecb.europa.eu/press/accounts/2026/html/index.en.html.

COUNTER-EVIDENCE
Oil is 11% above its level in spring, and the tariffs announced last week could lift goods prices before the next projections are ready.

BOTTOM LINE
A cut remains the most likely outcome; I put it at 80%.`,

  `## Evidence
| Year | Launches | Failures |
|------|----------|----------|
| 2024 | 134 | 1 |
| 2025 | 151 | 2 |
------------------------------------------------------------
Cadence has risen every quarter ([manifest](https://en.wikipedia.org/wiki/List_of_launches_(2026)), [filing](https://www.faa.gov/space/licenses/operator_licenses?utm_source=news)).

## Method
Poisson with a drifting rate, fitted on thirty-six months.

## Analysis
At 13.2 launches a month the expected total by December is 158 ± 12; reaching 150 needs merely that the present rate holds. A single grounding lasted 15 days at most in the past.

## Counter-Evidence
Weather around the cape cost five attempts last autumn, and a pad is closed for refurbishment until October.

## Bottom Line
Likely, about 71 of 100 such worlds.`,

  `**EVIDENCE:** Polling averages have the incumbent ahead by 3.1 points with 14 days left (<https://projects.fivethirtyeight.com/polls/senate/2026/texas/>). Dick Durbin's old seat moved the same way in the final stretch. Early ballots returned so far: 412,000, of which 46% come from registered opponents (https://www.sos.state.tx.us/elections/earlyvoting/2026/index.shtml).

**ANALYSIS:** Historically a lead of three points two weeks out has held in 83% of races since 1998. Shrinking the average towards fundamentals gives 2.2 points with a standard deviation of 4.5, hence 69%.

**COUNTER-EVIDENCE:** Undecided voters number 7%, pollsters assumed a turnout model which missed badly in the previous cycle, and Hispanic respondents are undersampled.

**BOTTOM LINE:** Lean yes at 68 percent.`,

  `1. EVIDENCE: The consortium's phase III trial enrolled 1,240 patients; the hazard ratio in the interim look was 0.71 (95% CI 0.58-0.87). Source: https://clinicaltrials.gov/study/NCT05678901
2. ANALYSIS: Agencies approved 19 of 22 oncology applications with a comparable effect size during the past decade; the advisory committee voted eleven to two. Base rate and vote agree. Details: https://www.fda.gov/advisory-committees/calendar/march-2026-meeting-oncologic-drugs
3. COUNTER-EVIDENCE: A manufacturing site received a warning letter; such letters delayed decisions in four cases, and rectal and penile toxicity signals were flagged in a subgroup of sex-stratified data.
4. BOTTOM LINE: Approval before the deadline has roughly 85% probability.`,

  `> EVIDENCE
Shiite parties hold 52 seats after the recount, Sunni lists 31 and Kurdish lists 27, according to the commission (https://ihec.iq/results/2026/final). Negotiations have lasted 41 days.

> ANALYSIS
Median time to a government since 2005 is 154 days. Only one of six formations finished inside ninety. The speaker was elected quickly, which halves the remaining path, yet the presidency needs a two-thirds quorum.

> COUNTER EVIDENCE
External pressure rose: both neighbours have urged a fast settlement; see "Talks resume in Baghdad" at https://www.reuters.com/world/middle-east/talks-resume-baghdad-2026-03-02/.

> BOTTOM LINE
Unlikely before the date. 22%.`,

  `EVIDENCE:
• GPU lead times fell from 26 to 14 weeks [1]
• Capital spending guidance: $455bn, $390bn and $310bn for three hyperscalers, 3x more than in 2023 [2]
• The A55 and H100 resale prices dropped 18%

ANALYSIS:
Supply catches up while demand remains strong. If guidance is met, purchases grow 34% against consensus growth of 29%; the beat frequency over twelve quarters is 11/12. Margins matter less here because the question asks about revenue only.

COUNTER–EVIDENCE:
Export controls may remove 6% of the addressable market; a customer digesting inventory could pause orders for a quarter, as happened in autumn 2022.

BOTTOM LINE:
Beats consensus: 88.

[1] https://www.example-research.io/notes/lead-times#table-2
[2] https://www.sec.gov/cgi-bin/browse-edgar?action=getcompany&type=10-Q`,

  `### EVIDENCE ###
Sea ice extent stood at 4.28 million km² on 10 September, the sixth lowest minimum on record (https://nsidc.org/arcticseaicenews/2026/09/). Daily losses averaged 31,000 km² in the preceding week, slower than the 2012 pace.

### ANALYSIS ###
Regression of the minimum on the extent at this date (1979–2025) leaves a residual deviation of 0.09 million km². The threshold of 4.0 lies three deviations beneath the central estimate of 4.22. Wind forecasts show weak southerlies.

### COUNTEREVIDENCE ###
Thickness retrievals from https://www.cpom.ucl.ac.uk/csopr/seaice.php?show_basin_thickness=0 suggest thinner floes north of Siberia, and a late cyclone could compact them.

### BOTTOM LINE ###
Very improbable, 3%.`,

  `Summary first: I expect the merger to close, with delay.

EVIDENCE
Regulators in Brussels opened a second phase (case M.11234, https://competition-cases.ec.europa.eu/cases/M.11234). The parties offered to divest the cockpit-display unit and the assembly plant at Scunthorpe. The spread stands at 6.2% over the bid.

ANALYSIS
An implied probability follows from the spread: downside 24%, upside 6.2%, thus roughly 79%. Second-phase cases with upfront divestitures were cleared in 31 of 37 instances; prohibition is rare (2 of 37), withdrawal somewhat likelier.

COUNTER-EVIDENCE
The remedy taker is not yet named. Analysts at two brokers assess the remedy as insufficient; the union's petition gathered 40,000 names: https://petition.parliament.uk/petitions/700123.

BOTTOM LINE
Closing by June: 74 %.`,

  `EVIDENCE: Die Erzeugerpreise sanken im Februar um 1,3 Prozent gegenüber dem Vorjahr (https://www.destatis.de/DE/Presse/Pressemitteilungen/2026/03/PD26_099.html). Die Auftragseingänge stiegen dagegen zum dritten Mal in Folge, getragen von Großaufträgen im Fahrzeugbau.

ANALYSIS: Frühindikatoren und harte Daten weichen voneinander ab. Gewichtet nach ihrer bisherigen Treffsicherheit ergibt sich ein leichtes Wachstum von 0,2 Prozent; die Unsicherheit bleibt beträchtlich, weil Lagerzyklen kaum vorherzusehen sind.

COUNTER-EVIDENCE: Der Einkaufsmanagerindex liegt weiterhin unter fünfzig Punkten (https://www.pmi.spglobal.com/Public/Home/PressRelease/germany-2026), und der Konsum enttäuscht.

BOTTOM LINE: Wachstum über null ist wahrscheinlich, etwa 63 Prozent.`,

  `*Evidence:*
Sold-out first run, 92% critics' score, opening weekend $148M (https://www.boxofficemojo.com/title/tt1234567/?ref_=bo_hm). Second weekends of comparable sequels fell 41%, 48%, 52%, 39%, 55%.

*Analysis:*
Applying the median drop of 48% gives $77M; school holidays support the midweek numbers. To pass $500M domestically the multiplier has to reach 3.4, whereas the genre averages 2.7 with a deviation of 0.4. That's 1.75 deviations away. Tit-for-tat discounting between chains might raise attendance, although revenue per ticket drops.

*Counter-evidence:*
Word of mouth is exceptional (A+), a re-release with added footage has been announced for July, and Harshit Rana's cameo drew crowds abroad: https://www.hollywoodreporter.com/movies/movie-news/second-weekend-1236543210/

*Bottom line:*
Falls short; 12% for crossing the mark.`,
];
