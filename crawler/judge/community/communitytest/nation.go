package communitytest

// nation describes the people of one country.
type nation struct {
	code, tag string
	zones     []string
	towns     []string
	given     []string
	family    []string
	bio       []string // with {town}
	texts     []string // with slots
	domain    string
}

// slots returns the texts that can fill each slot.
func slots() map[string][]string {
	return map[string][]string{
		"n": {"2", "3", "5", "7", "10", "12", "15", "20", "30", "45", "100"},
		"pt": {"o jogo", "a reunião", "a viagem", "o concerto", "a entrevista", "a consulta", "o exame", "a festa",
			"o trabalho", "a mudança"},
		"pq": {"amanhã", "na sexta", "no sábado", "esta noite", "na próxima semana", "hoje", "depois do almoço",
			"logo cedo"},
		"pw": {"a minha mãe", "o meu irmão", "a minha avó", "o Pedro", "a Ana", "o vizinho", "a professora", "o chefe"},
		"bw": {"minha mãe", "meu irmão", "minha avó", "o Pedro", "a Ana", "o vizinho", "a professora", "o chefe"},
		"en": {"the game", "the meeting", "the trip", "the concert", "the interview", "the exam", "the party",
			"the move"},
		"eq": {"tomorrow", "on Friday", "on Saturday", "tonight", "next week", "today", "after lunch"},
		"es": {"el partido", "la reunión", "el viaje", "el concierto", "la entrevista", "el examen", "la fiesta"},
		"sq": {"mañana", "el viernes", "el sábado", "esta noche", "la semana que viene", "hoy"},
		"fr": {"le match", "la réunion", "le voyage", "le concert", "l'entretien", "l'examen", "la fête"},
		"fq": {"demain", "vendredi", "samedi", "ce soir", "la semaine prochaine", "aujourd'hui"},
	}
}

func portugal() nation {
	return nation{code: "PT", tag: "pt-PT", zones: []string{"Europe/Lisbon", "Lisbon"}, domain: ".pt",
		towns: []string{"Lisboa", "Porto", "Braga", "Coimbra", "Aveiro", "Setúbal", "Faro", "Évora", "Leiria", "Viseu",
			"Guimarães", "Almada", "Covilhã",
			"Vila Real", "Funchal", "Ponta Delgada", "Margem Sul", "Matosinhos", "Santarém", "Figueira da Foz",
			"Barcelos", "Chaves", "Mirandela", "Beja"},
		given: []string{"Maria", "Ana", "João", "Pedro", "Miguel", "Rita", "Carla", "Paulo", "Luís", "Sara", "Gonçalo",
			"Tiago", "Afonso", "Duarte", "Nuno",
			"Inês", "Mafalda", "Catarina", "Rui", "Hugo", "Telmo", "Vera", "Sónia", "Marta", "Diogo"},
		family: []string{"Silva", "Santos", "Ferreira", "Pereira", "Oliveira", "Costa", "Rodrigues", "Martins", "Sousa",
			"Fernandes", "Lopes", "Marques",
			"Almeida", "Ribeiro", "Pinto", "Carvalho", "Teixeira", "Moreira", "Antunes", "Fonseca", "Matos", "Coelho",
			"Pacheco", "Valente"},
		bio: []string{"Natural de {town}", "Portuguesa de gema", "orgulhosamente tuga",
			"adepto do Benfica, pai de dois", "professora, gosto de ler e de gatos", "Engenheiro civil",
			"vivo em {town}", "fotografia e caminhadas", "sportinguista desde pequenino", "cinema, livros, café",
			"estudante de medicina", "opiniões pessoais", "mãe, designer", "jogador de xadrez"},
		texts: []string{
			"Estou a preparar {pt}, vemo-nos {pq}", "O autocarro atrasou-se outra vez, {n} minutos à espera na paragem",
			"Bora lá, malta, {pq} há {pt}",
			"Tenho de ir às finanças {pq} tratar do cartão de cidadão", "Que fixe, {pw} telefonou-me agora mesmo",
			"Isto está a ficar giro, estou a gostar imenso",
			"Perdi o comboio e agora estou à espera do próximo, só daqui a {n} minutos",
			"Já comeste o pequeno-almoço? Eu bebi um galão e comi uma torrada",
			"Não percebo porque é que {pw} não me atende o telemóvel",
			"Deixei o telemóvel em casa, contactem-me por aqui", "Aquela casa de banho estava uma desgraça",
			"O miúdo está a dormir, finalmente", "Vou buscar os putos à escola e já volto",
			"Fui ao talho e ao supermercado, paguei {n} euros por quase nada",
			"A equipa está a jogar mal, o treinador tem de sair", "Que seca de filme, adormeci a meio",
			"Estás a brincar comigo? {pt} foi adiada para {pq}",
			"Apanhei uma molha, esqueci-me do chapéu de chuva",
			"Ontem vi {pw} no centro comercial, está tudo bem com ela", "Preciso de férias, estou a dar em doida",
			"Conduzir nesta autoestrada é um pesadelo, {n} quilómetros de fila",
			"Alguém me diz a que horas abre a pastelaria?", "O ecrã do computador avariou-se, {pw} vai arranjá-lo",
			"Pá, isto assim não pode ser", "Dá-me jeito sair mais cedo {pq}",
			"A rapariga da receção foi muito simpática connosco",
			"Hei de lá ir um dia destes, dizem que se come bem",
			"Ganhámos! Nem acredito, estou a tremer", "Acabei de chegar, {pt} correu lindamente",
			"Estamos a pensar mudar de casa, as rendas estão pela hora da morte"}}
}

func brazil() nation {
	return nation{code: "BR", tag: "pt-BR", zones: []string{"America/Sao_Paulo", "America/Fortaleza", "Brasilia"},
		domain: ".com.br",
		towns: []string{"São Paulo", "Rio de Janeiro", "Belo Horizonte", "Curitiba", "Recife", "Porto Alegre", "Manaus",
			"Brasília", "Goiânia", "Campinas",
			"Fortaleza", "Florianópolis", "Belém", "Natal RN", "Uberlândia", "Niterói", "Londrina", "Sampa",
			"Minas Gerais", "Santos SP", "Vitória ES", "Maceió"},
		given: []string{"Maria", "Ana", "João", "Pedro", "Miguel", "Paulo", "Luís", "Sara", "Lucas", "Gabriel",
			"Thiago", "Caio", "Wellington", "Thais", "Jéssica",
			"Bruna", "Luana", "Everton", "Larissa", "Rafaela", "Vinícius", "Renan", "Camila", "Letícia", "Rodrigo"},
		family: []string{"Silva", "Santos", "Ferreira", "Pereira", "Oliveira", "Costa", "Rodrigues", "Souza", "Lima",
			"Alves", "Gomes", "Barbosa", "Rocha",
			"Nascimento", "Araújo", "Dias", "Cardoso", "Moraes", "Batista", "Cavalcanti", "Vieira", "Freitas"},
		bio: []string{"Natural de {town}", "brasileira com muito orgulho", "flamenguista doente", "pai de duas meninas",
			"professora, adoro gatos", "Engenheiro civil", "moro em {town}",
			"fotografia e trilha", "corintiano até morrer", "cinema, livros, café", "estudante de direito",
			"opiniões pessoais", "mãe, designer", "gamer", "🇧🇷"},
		texts: []string{
			"Tô preparando {pt}, a gente se vê {pq}", "O ônibus atrasou de novo, {n} minutos esperando no ponto",
			"Bora galera, {pq} tem {pt}",
			"Preciso ir no cartório {pq} resolver meu CPF", "Que legal, {bw} me ligou agora mesmo",
			"Isso tá ficando massa, tô adorando demais",
			"Perdi o trem e agora tô esperando o próximo, só daqui a {n} minutos",
			"Já tomou café da manhã? Eu comi um pão de queijo com suco",
			"Não entendo por que {bw} não atende o celular", "Esqueci o celular em casa, me chama por aqui",
			"Aquele banheiro tava uma bagunça, gente",
			"O menino tá dormindo, finalmente", "Vou pegar as crianças na escola e já volto",
			"Fui no açougue e no mercado, gastei {n} reais em quase nada",
			"O time tá jogando muito mal, esse técnico tem que sair", "Que filme chato, dormi no meio kkkk",
			"Você tá brincando comigo? {pt} ficou pra {pq}",
			"Peguei a maior chuva, esqueci o guarda-chuva", "Ontem encontrei {bw} no shopping, tá tudo bem com ela",
			"Preciso de férias, tô ficando doida",
			"Dirigir nessa rodovia é um inferno, {n} quilômetros de congestionamento",
			"Alguém sabe que horas abre a padaria?", "A tela do notebook quebrou, {bw} vai consertar",
			"Cara, desse jeito não dá", "Vai ser bom sair mais cedo {pq}",
			"A moça da recepção foi muito legal com a gente", "Um dia eu vou lá, falam que a comida é boa demais",
			"Ganhamos! Nem acredito, tô tremendo", "Acabei de chegar, deu tudo certo com {pt}",
			"A gente tá pensando em se mudar, o aluguel tá um absurdo"}}
}

// neutral returns texts that people of both countries could have written.
func neutral() []string {
	return []string{"Bom dia a todos", "Boa noite", "Muito obrigado pela ajuda", "Feliz aniversário, tudo de bom",
		"Que dia lindo", "Concordo com tudo", "Até {pq}",
		"Saudades da praia", "Não acredito nisso", "Parabéns pela vitória", "{n} anos, o tempo voa",
		"Que jogo incrível", "Adoro esta música", "Hoje é dia de festa"}
}

func strangers() []nation {
	english := []string{"Getting ready for {en}, see you {eq}",
		"The bus was late again, {n} minutes waiting in the rain", "Can't believe {en} is already {eq}",
		"My phone died so message me here", "Does anyone know a good place for breakfast around here?",
		"What a boring film, fell asleep halfway through", "I need a holiday so badly",
		"The kids are finally asleep, time for a cup of tea", "We won! I am still shaking",
		"Looking for a new flat, the rents are ridiculous", "That was the best {n} pounds I ever spent",
		"Working from home {eq}, wish me luck", "Someone left their umbrella on the train again",
		"Thank you all for the lovely messages"}
	spanish := []string{"Estoy preparando {es}, nos vemos {sq}",
		"El autobús llegó tarde otra vez, {n} minutos esperando", "No me puedo creer que {es} sea {sq}",
		"Se me ha muerto el móvil, escribidme por aquí", "¿Alguien sabe dónde desayunar bien por aquí?",
		"Qué película más aburrida, me quedé dormido", "Necesito vacaciones ya",
		"Los niños por fin se han dormido", "¡Hemos ganado! Todavía estoy temblando",
		"Buscando piso, los alquileres están imposibles", "Gracias a todos por los mensajes",
		"Mañana me toca madrugar y no me apetece nada"}
	french := []string{"Je prépare {fr}, on se voit {fq}", "Le bus était encore en retard, {n} minutes d'attente",
		"Je n'arrive pas à croire que {fr} soit {fq}",
		"Mon téléphone est mort, écrivez-moi ici", "Quelqu'un connaît un bon endroit pour le petit déjeuner ?",
		"Quel film ennuyeux, je me suis endormi", "J'ai besoin de vacances",
		"Les enfants dorment enfin", "On a gagné ! J'en tremble encore",
		"On cherche un appartement, les loyers sont fous", "Merci à tous pour vos messages"}
	return []nation{
		{code: "GB", tag: "en-GB", zones: []string{"Europe/London"},
			towns:  []string{"London", "Manchester", "Leeds", "Bristol", "Glasgow", "Cardiff", "Liverpool"},
			domain: ".co.uk",
			given:  []string{"John", "Emily", "James", "Sarah", "Oliver", "Chloe", "Harry", "Megan"},
			family: []string{"Smith", "Jones", "Taylor", "Brown", "Walker", "Evans"},
			bio: []string{"Runner, reader, tea drinker", "Living in {town}", "views my own", "software engineer",
				"mum of two", "football mad"}, texts: english},
		{code: "ES", tag: "es", zones: []string{"Europe/Madrid"},
			towns: []string{"Madrid", "Barcelona", "Sevilla", "Valencia", "Vigo", "Bilbao", "Zaragoza"}, domain: ".es",
			given:  []string{"Javier", "Lucía", "Carmen", "Pablo", "Álvaro", "Marta", "Sara"},
			family: []string{"García", "Martínez", "González", "López", "Hernández", "Pérez"},
			bio: []string{"Profesora en {town}", "opiniones personales", "cine y libros", "del Betis", "ingeniero",
				"vivo en {town}"}, texts: spanish},
		{code: "FR", tag: "fr", zones: []string{"Europe/Paris"},
			towns: []string{"Paris", "Lyon", "Marseille", "Toulouse", "Nantes", "Bordeaux"}, domain: ".fr",
			given:  []string{"Pierre", "Camille", "Jean", "Julie", "Hugo", "Léa"},
			family: []string{"Martin", "Bernard", "Dubois", "Petit", "Moreau", "Laurent"},
			bio: []string{"Prof à {town}", "avis personnels", "cinéma et livres", "ingénieur", "maman de deux enfants",
				"j'habite à {town}"}, texts: french},
	}
}
