package crawltest

// A vocabulary is one language of the world. In a template $T is a topic, $P a place, $N a person,
// $Y a year, $K a number, $M a month.
type vocabulary struct {
	lang      string // BCP 47
	articles  string // the path segment of articles
	topics    []topic
	places    []string
	people    []string
	months    []string
	title     string
	sentences []string
	more      string // the heading above the links
}

type topic struct{ slug, name string }

func vocabularies() []vocabulary {
	return []vocabulary{portuguese(), spanish(), english()}
}

func portuguese() vocabulary {
	return vocabulary{
		lang: "pt", articles: "artigos", more: "Ler também", title: "$T em $P: caderno de $Y",
		topics: []topic{{"bacalhau", "o bacalhau"}, {"cortica", "a cortiça"}, {"azulejo", "o azulejo"},
			{"fado", "o fado"},
			{"vindima", "a vindima"}, {"mercado", "o mercado"}, {"biblioteca", "a biblioteca"},
			{"comboio", "o comboio"},
			{"farol", "o farol"}, {"olaria", "a olaria"}, {"moinho", "o moinho"}, {"romaria", "a romaria"}},
		places: []string{"Braga", "Évora", "Coimbra", "Aveiro", "Viseu", "Faro", "Guimarães", "Setúbal", "Bragança",
			"Beja", "Tomar", "Lagos",
			"Viana do Castelo", "Funchal", "Angra do Heroísmo", "Vila Real", "Leiria", "Santarém", "Portalegre",
			"Óbidos"},
		people: []string{"Inês Carvalho", "João Magalhães", "Conceição Araújo", "Tomás Brandão", "Graça Leitão",
			"Simão Vilela", "Luísa Falcão",
			"Gonçalo Antunes", "Benedita Sá", "Artur Queirós", "Fátima Negrão", "Rui Simões"},
		months: []string{"janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "setembro", "outubro",
			"novembro", "dezembro"},
		sentences: []string{
			"Quem chega a $P em $M encontra $T logo à entrada da vila, com $K visitantes por semana.",
			"Segundo $N, $T mudou muito desde $Y, quando havia apenas $K famílias na freguesia.",
			"A câmara de $P prometeu $K euros para as obras, mas $N ainda não viu os papéis.",
			"Em $Y publicou-se um livro de $K páginas em que $T ocupa um capítulo inteiro.",
			"Não há em $P quem não conheça $N, que guarda $K fotografias antigas numa caixa de sapatos.",
			"Os vizinhos juntaram-se em $M para discutir $T e saíram de lá com $K assinaturas.",
			"«O que falta é gente nova», diz $N, que voltou a $P em $Y depois de $K meses fora.",
			"Um estudo da universidade mostra que $T representa $K postos de trabalho no distrito de $P.",
			"Durante a manhã de $M contámos $K pessoas à espera, quase todas vindas de $P.",
			"Entre $Y e hoje, $T perdeu espaço nos jornais, embora $N continue a escrever sobre o assunto.",
			"A estrada que liga $P ao rio tem $K curvas e foi reparada pela última vez em $Y.",
			"Ninguém sabe ao certo porque é que $T se tornou tão conhecido depois de $Y.",
			"$N explica que são precisos $K dias de trabalho, muita paciência e alguma sorte.",
			"Na associação de $P há aulas às quintas-feiras, e em $M abrem $K vagas.",
			"O arquivo conserva uma carta de $Y na qual se pedia que $T fosse protegido por lei.",
			"Ao fim da tarde a praça de $P enche-se, e $N conta histórias a $K crianças.",
		},
	}
}

func spanish() vocabulary {
	return vocabulary{
		lang: "es", articles: "articulos", more: "Leer también", title: "$T en $P: cuaderno de $Y",
		topics: []topic{{"aceituna", "la aceituna"}, {"flamenco", "el flamenco"}, {"ceramica", "la cerámica"},
			{"molino", "el molino"},
			{"lonja", "la lonja"}, {"tranvia", "el tranvía"}, {"acequia", "la acequia"}, {"feria", "la feria"},
			{"queso", "el queso"}, {"sidra", "la sidra"}, {"imprenta", "la imprenta"}, {"pastoreo", "el pastoreo"}},
		places: []string{"Salamanca", "Cádiz", "Zamora", "Cáceres", "Jaén", "Lugo", "Teruel", "Segovia", "Córdoba",
			"Huelva", "Ávila", "León",
			"Badajoz", "Murcia", "Logroño", "Almería", "Soria", "Cuenca", "Gijón", "Úbeda"},
		people: []string{"Lucía Ibáñez", "Álvaro Montes", "Pilar Cañizares", "Íñigo Salcedo", "Rocío Peña",
			"Andrés Villalobos", "Nuria Gálvez",
			"Joaquín Ordóñez", "Begoña Ruiz", "Martín Escudero", "Asunción Vega", "Tomás Requena"},
		months: []string{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
			"octubre", "diciembre"},
		sentences: []string{
			"Quien llega a $P en $M se encuentra con $T junto a la plaza, y con $K visitantes cada semana.",
			"Según $N, $T ha cambiado mucho desde $Y, cuando apenas quedaban $K vecinos en el barrio.",
			"El ayuntamiento de $P anunció $K euros para las obras, pero $N todavía no ha visto los planos.",
			"En $Y se publicó un libro de $K páginas en el que $T ocupa un capítulo entero.",
			"No hay nadie en $P que no conozca a $N, que guarda $K fotografías antiguas en una caja.",
			"Los vecinos se reunieron en $M para hablar de $T y salieron con $K firmas.",
			"«Lo que falta es gente joven», dice $N, que volvió a $P en $Y después de $K meses fuera.",
			"Un estudio de la universidad muestra que $T supone $K empleos en la provincia de $P.",
			"Durante la mañana de $M contamos $K personas en la cola, casi todas venidas de $P.",
			"Entre $Y y hoy, $T ha perdido sitio en los periódicos, aunque $N sigue escribiendo sobre ello.",
			"La carretera que une $P con el río tiene $K curvas y se arregló por última vez en $Y.",
			"Nadie sabe muy bien por qué $T se hizo tan famoso después de $Y.",
			"$N explica que hacen falta $K días de trabajo, mucha paciencia y algo de suerte.",
			"En la asociación de $P hay clases los jueves, y en $M se abren $K plazas.",
			"El archivo conserva una carta de $Y en la que se pedía que $T quedara protegido por ley.",
			"Al caer la tarde la plaza de $P se llena, y $N cuenta historias a $K niños.",
		},
	}
}

func english() vocabulary {
	return vocabulary{
		lang: "en", articles: "articles", more: "Read next", title: "$T in $P: a notebook of $Y",
		topics: []topic{{"lighthouse", "the lighthouse"}, {"orchard", "the orchard"}, {"canal", "the canal"},
			{"printing", "the printing house"},
			{"ferry", "the ferry"}, {"bakery", "the bakery"}, {"quarry", "the quarry"}, {"brewery", "the brewery"},
			{"library", "the library"}, {"weaving", "the weaving shed"}, {"allotment", "the allotment"},
			{"choir", "the choir"}},
		places: []string{"Whitby", "Ludlow", "Hexham", "Penzance", "Kendal", "Wells", "Oban", "Tenby", "Rye", "Galway",
			"Durham", "Lewes",
			"Buxton", "Stromness", "Kilkenny", "Alnwick", "Frome", "Hay", "Settle", "Cromer"},
		people: []string{"Harriet Langley", "Owen Prichard", "Maeve Donnelly", "Edmund Thwaite", "Isla Carmichael",
			"Walter Penrose", "Nora Whitfield",
			"Callum Baird", "Beatrice Holloway", "Ralph Ashdown", "Siobhan Keane", "Giles Merriman"},
		months: []string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
			"October", "November"},
		sentences: []string{
			"Anyone who comes to $P in $M will see $T before anything else, along with $K visitors a week.",
			"According to $N, $T has changed a good deal since $Y, when only $K families lived nearby.",
			"The council of $P promised $K pounds for repairs, though $N has not seen the drawings yet.",
			"A book of $K pages came out in $Y, and $T fills a whole chapter of it.",
			"There is nobody in $P who does not know $N, who keeps $K old photographs in a shoe box.",
			"The neighbours met in $M to talk about $T and went home with $K signatures.",
			"\"What we lack is young people,\" says $N, who came back to $P in $Y after $K months away.",
			"A study by the university shows that $T accounts for $K jobs in the county around $P.",
			"On a morning in $M we counted $K people waiting outside, nearly all of them from $P.",
			"Between $Y and today $T has lost its place in the papers, although $N still writes about it.",
			"The road that joins $P to the river has $K bends and was last mended in $Y.",
			"Nobody quite knows why $T became so well known after $Y.",
			"$N explains that it takes $K days of work, a lot of patience and some luck.",
			"The society in $P holds classes on Thursdays, and $K places open in $M.",
			"The archive keeps a letter of $Y which asked that $T be protected by law.",
			"In the evening the square of $P fills up, and $N tells stories to $K children.",
		},
	}
}
